#include "agent/monitor_health.h"

#include "base/clock.h"
#include "codec/duration_text.h"

enum { SUCCESSES_PER_LOG_LINE = 10, DURATION_TEXT_BYTES = 64 };

static const uint64_t TICK_NS = (uint64_t)MONITOR_HEALTH_CHECK_S * NS_PER_S;

static void begin_check(struct monitor_health *health);

static struct log_field task_field(void)
{
	return log_text("taskName", "vm-monitor health checks");
}

static void on_success(struct monitor_health *health, int64_t duration_ns)
{
	health->fail_sequence = 0;
	health->ok_sequence++;
	if (health->ok_sequence % SUCCESSES_PER_LOG_LINE == 0)
		log_info(&health->logger, "vm-monitor health check successful", task_field(),
		         log_duration("duration", duration_ns), log_uint("okSequence", health->ok_sequence));
	health->handler.on_success(health->handler.context);
}

static void on_failure(struct monitor_health *health, int64_t duration_ns, const struct error *err)
{
	uint64_t now_ns = loop_now_ns(health->loop);
	struct log_field duration = log_duration("duration", duration_ns);
	struct buffer limit;
	struct error reason;

	if (health->ok_sequence != 0)
		log_error(&health->logger, "vm-monitor health check failed", task_field(), duration,
		          log_uint("okSequence", health->ok_sequence), log_error_field(err));
	else if (health->fail_sequence != 0)
		log_error(&health->logger, "vm-monitor health check failed", task_field(), duration,
		          log_uint("failSequence", health->fail_sequence), log_error_field(err));
	else
		log_error(&health->logger, "vm-monitor health check failed", task_field(), duration,
		          log_error_field(err));
	health->ok_sequence = 0;
	if (health->fail_sequence++ == 0)
		health->first_failure_ns = now_ns;
	if (now_ns - health->first_failure_ns <= health->config->max_health_check_failures_ns)
		return;
	buffer_init(&limit, DURATION_TEXT_BYTES);
	duration_print((int64_t)health->config->max_health_check_failures_ns, &limit);
	error_set(&reason, ERROR_TIMEOUT, "vm-monitor has been failing health checks for at least %.*s",
	          SLICE_ARGS(buffer_slice(&limit)));
	buffer_destroy(&limit);
	monitor_health_stop(health);
	health->handler.on_unhealthy(health->handler.context, &reason);
}

static void on_reply(void *context, const struct monitor_message *reply, const struct error *err)
{
	struct monitor_health *health = context;
	int64_t duration_ns = (int64_t)(loop_now_ns(health->loop) - health->check_started_ns);

	(void)reply; /* whatever the type of the reply, the monitor is alive (11.4.3) */
	health->checking = false;
	if (!health->running)
		return;
	if (err == NULL)
		on_success(health, duration_ns);
	else
		on_failure(health, duration_ns, err);
	if (health->running && health->tick_waiting) {
		health->tick_waiting = false;
		begin_check(health);
	}
}

static void begin_check(struct monitor_health *health)
{
	health->checking = true;
	health->check_started_ns = loop_now_ns(health->loop);
	monitor_connection_call(health->connection, MONITOR_HEALTH_CHECK, (struct resources){ 0 }, on_reply, health);
}

/* The n-th tick comes n periods after the start, however late the one before was handled. */
static void on_tick(void *context)
{
	struct monitor_health *health = context;
	uint64_t now_ns = loop_now_ns(health->loop);
	uint64_t next_ns = health->started_ns + (health->ticks + 2) * TICK_NS;

	health->ticks++;
	loop_timer_start(health->loop, &health->timer, next_ns > now_ns ? next_ns - now_ns : 0, on_tick, health);
	if (health->checking)
		health->tick_waiting = true;
	else
		begin_check(health);
}

void monitor_health_init(struct monitor_health *health, const struct monitor_health *settings)
{
	*health = *settings;
	health->running = false;
	health->timer = (struct loop_timer){ 0 };
}

void monitor_health_start(struct monitor_health *health)
{
	health->running = true;
	health->checking = false;
	health->tick_waiting = false;
	health->ticks = 0;
	health->started_ns = loop_now_ns(health->loop);
	health->ok_sequence = 0;
	health->fail_sequence = 0;
	log_info(&health->logger, "background worker started", task_field());
	loop_timer_start(health->loop, &health->timer, TICK_NS, on_tick, health);
}

void monitor_health_stop(struct monitor_health *health)
{
	if (!health->running)
		return;
	health->running = false;
	loop_timer_stop(health->loop, &health->timer);
	log_info(&health->logger, "background worker ended normally", task_field());
}
