#include "extender/tls_files.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "extender/process_limits.h"

struct tls_files {
	struct loop *loop;
	const char *certificate_path, *key_path;
	struct logger logger;
	struct buffer certificate, key; /* as they were last read, good or not */
	struct tls_settings *settings;
	struct loop_timer timer;
	bool unreadable; /* that was logged */
};

static bool read_both(const struct tls_files *files, struct buffer *certificate, struct buffer *key, struct error *err)
{
	buffer_init(certificate, EXTENDER_TLS_FILE_BYTES);
	buffer_init_secret(key, EXTENDER_TLS_FILE_BYTES);
	if (file_read(files->certificate_path, certificate, err) && file_read(files->key_path, key, err))
		return true;
	buffer_destroy(certificate);
	buffer_destroy(key);
	return false;
}

/* Takes the contents over. False: the settings are those from before. */
static bool use(struct tls_files *files, struct buffer certificate, struct buffer key, struct error *err)
{
	const struct tls_server_options options = {
		.certificate_pem = buffer_slice(&certificate),
		.key_pem = buffer_slice(&key),
	};
	struct tls_settings *settings = tls_server_settings_create(files->loop, &options, err);

	buffer_destroy(&files->certificate);
	buffer_destroy(&files->key);
	files->certificate = certificate;
	files->key = key;
	if (settings == NULL)
		return error_wrap(err, "%s and %s", files->certificate_path, files->key_path);
	tls_settings_release(files->settings);
	files->settings = settings;
	return true;
}

void tls_files_look(struct tls_files *files)
{
	struct buffer certificate, key;
	struct error err;

	if (!read_both(files, &certificate, &key, &err)) {
		if (!files->unreadable)
			log_error(&files->logger, "Failed to read the certificate again; the old one stays in use",
			          log_error_field(&err));
		files->unreadable = true;
		return;
	}
	files->unreadable = false;
	if (slice_equal(buffer_slice(&certificate), buffer_slice(&files->certificate)) &&
	    slice_equal(buffer_slice(&key), buffer_slice(&files->key))) {
		buffer_destroy(&certificate);
		buffer_destroy(&key);
		return;
	}
	/* While one of the two is still the old one, they don't fit: that ends with the next look. */
	if (use(files, certificate, key, &err))
		log_info(&files->logger, "The certificate has changed", log_text("path", files->certificate_path));
	else
		log_warn(&files->logger, "The new certificate can't be used; the old one stays in use",
		         log_error_field(&err));
}

static void look_again(void *context)
{
	struct tls_files *files = context;

	tls_files_look(files);
	loop_timer_start(files->loop, &files->timer, (uint64_t)EXTENDER_TLS_LOOK_S * NS_PER_S, look_again, files);
}

struct tls_files *tls_files_open(struct loop *loop, const char *certificate_path, const char *key_path,
                                 const struct logger *logger, struct error *err)
{
	struct tls_files *files = memory_allocate(sizeof *files);
	struct buffer certificate, key;

	if (files == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a certificate");
		return NULL;
	}
	*files = (struct tls_files){
		.loop = loop,
		.certificate_path = certificate_path,
		.key_path = key_path,
		.logger = *logger,
	};
	if (!read_both(files, &certificate, &key, err) || !use(files, certificate, key, err)) {
		tls_files_close(files);
		return NULL;
	}
	loop_timer_start(loop, &files->timer, (uint64_t)EXTENDER_TLS_LOOK_S * NS_PER_S, look_again, files);
	return files;
}

struct tls_settings *tls_files_settings(const struct tls_files *files)
{
	return files->settings;
}

void tls_files_close(struct tls_files *files)
{
	if (files == NULL)
		return;
	loop_timer_stop(files->loop, &files->timer);
	tls_settings_release(files->settings);
	buffer_destroy(&files->certificate);
	buffer_destroy(&files->key);
	memory_release(files);
}
