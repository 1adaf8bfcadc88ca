/*
 * A refusal is one of a few sentences (spec generations 2.6). What it says leads to a version to try next; a version
 * that was refused isn't tried again until another one has been accepted.
 */
#include "agent/plugin_versions.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const enum plugin_protocol CANDIDATES[] = {
	PLUGIN_PROTOCOL_5_0, PLUGIN_PROTOCOL_4_0, PLUGIN_PROTOCOL_3_0, PLUGIN_PROTOCOL_2_1, PLUGIN_PROTOCOL_2_0,
};

enum { CANDIDATE_COUNT = sizeof CANDIDATES / sizeof CANDIDATES[0] };

/* For comparing: 2.1 is 2001. */
enum { MAJOR = 1000 };

static unsigned rank_of(enum plugin_protocol version)
{
	switch (version) {
	case PLUGIN_PROTOCOL_AUTO:
		break;
	case PLUGIN_PROTOCOL_2_0:
		return 2 * MAJOR;
	case PLUGIN_PROTOCOL_2_1:
		return 2 * MAJOR + 1;
	case PLUGIN_PROTOCOL_3_0:
		return 3 * MAJOR;
	case PLUGIN_PROTOCOL_4_0:
		return 4 * MAJOR;
	case PLUGIN_PROTOCOL_5_0:
		return 5 * MAJOR;
	}
	return 0;
}

const char *plugin_version_name(enum plugin_protocol version)
{
	static const char *const NAMES[] = {
		[PLUGIN_PROTOCOL_AUTO] = "auto", [PLUGIN_PROTOCOL_2_0] = "v2.0", [PLUGIN_PROTOCOL_2_1] = "v2.1",
		[PLUGIN_PROTOCOL_3_0] = "v3.0",  [PLUGIN_PROTOCOL_4_0] = "v4.0", [PLUGIN_PROTOCOL_5_0] = "v5.0",
	};

	return NAMES[version];
}

/* The highest candidate from low to high; AUTO if there is none. */
static enum plugin_protocol highest(unsigned low, unsigned high)
{
	for (size_t i = 0; i < CANDIDATE_COUNT; i++) {
		unsigned rank = rank_of(CANDIDATES[i]);

		if (rank >= low && rank <= high)
			return CANDIDATES[i];
	}
	return PLUGIN_PROTOCOL_AUTO;
}

/* ---- what a refusal says ---- */

static struct slice trim(struct slice text)
{
	while (text.length > 0 && isspace((unsigned char)text.data[0]))
		text = slice_from_offset(text, 1);
	while (text.length > 0 && isspace((unsigned char)text.data[text.length - 1]))
		text.length--;
	return text;
}

static bool begins_with(struct slice text, const char *start)
{
	size_t length = strlen(start);

	if (text.length < length)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (tolower((unsigned char)text.data[i]) != start[i])
			return false;
	}
	return true;
}

static bool contains(struct slice text, const char *part)
{
	for (; text.length > 0; text = slice_from_offset(text, 1)) {
		if (begins_with(text, part))
			return true;
	}
	return false;
}

/* Takes the start off *text, if it is that. */
static bool take(struct slice *text, const char *start)
{
	if (!begins_with(*text, start))
		return false;
	*text = slice_from_offset(*text, strlen(start));
	return true;
}

static bool take_number(struct slice *text, unsigned *ret_number)
{
	unsigned number = 0;
	size_t length = 0;

	while (length < text->length && length < 3 && isdigit((unsigned char)text->data[length]))
		number = number * 10 + (unsigned)(text->data[length++] - '0');
	if (length == 0)
		return false;
	*text = slice_from_offset(*text, length);
	*ret_number = number;
	return true;
}

/* "v2.1" */
static bool take_version(struct slice *text, unsigned *ret_rank)
{
	unsigned major, minor;

	if (!take(text, "v") || !take_number(text, &major) || !take(text, ".") || !take_number(text, &minor))
		return false;
	*ret_rank = major * MAJOR + minor;
	return true;
}

/* "protocol version mismatch: need v1.0 to v2.0 but got …"; *ret_range is the part in the middle. */
static bool read_mismatch(struct slice text, unsigned *ret_low, unsigned *ret_high, struct slice *ret_range)
{
	struct slice range;

	if (!take(&text, "protocol version mismatch: need "))
		return false;
	range = text;
	if (!take_version(&text, ret_low))
		return false;
	*ret_high = *ret_low;
	if (take(&text, " to ") && !take_version(&text, ret_high))
		return false;
	range.length -= text.length;
	*ret_range = range;
	return begins_with(text, " but got ");
}

static bool wants_unit(struct slice text)
{
	return begins_with(text, "computeunit required for") ||
	       begins_with(text, "computeunit fields must be non-zero");
}

bool plugin_versions_read_refusal(struct slice body, char ret_wants[PLUGIN_VERSION_TEXT_BYTES])
{
	struct slice text = trim(body);
	struct slice range;
	unsigned low, high;

	if (read_mismatch(text, &low, &high, &range)) {
		(void)snprintf(ret_wants, PLUGIN_VERSION_TEXT_BYTES, "%.*s", SLICE_ARGS(range));
		return true;
	}
	if (!wants_unit(text))
		return false;
	(void)snprintf(ret_wants, PLUGIN_VERSION_TEXT_BYTES, "a compute unit");
	return true;
}

enum refusal { REFUSAL_OF_SOMETHING_ELSE, REFUSAL_NAMES_RANGE, REFUSAL_OF_VERSION };

/* Rules 2a to 2e. *ret_next AUTO: the refusal is about the version, but there is none to try. */
static enum refusal read_refusal(struct slice body, enum plugin_protocol sent, enum plugin_protocol *ret_next)
{
	struct slice text = trim(body);
	struct slice range;
	unsigned low, high;

	if (read_mismatch(text, &low, &high, &range)) {
		*ret_next = highest(low, high);
		return REFUSAL_NAMES_RANGE;
	}
	/* 4.0 and 5.0 write memory alike: what can't read one can't read the other. */
	if (begins_with(text, "bad json") && text.length == strlen("bad json") && sent >= PLUGIN_PROTOCOL_4_0) {
		*ret_next = highest(0, rank_of(PLUGIN_PROTOCOL_4_0) - 1);
		return REFUSAL_OF_VERSION;
	}
	if (wants_unit(text) && sent < PLUGIN_PROTOCOL_4_0) {
		*ret_next = PLUGIN_PROTOCOL_4_0;
		return REFUSAL_OF_VERSION;
	}
	if (begins_with(text, "invalid protocol version") ||
	    (contains(text, "unsupported") && contains(text, "version"))) {
		*ret_next = highest(0, rank_of(sent) - 1);
		return REFUSAL_OF_VERSION;
	}
	return REFUSAL_OF_SOMETHING_ELSE;
}

/* ---- what is known of the pods ---- */

void plugin_versions_init(struct plugin_versions *versions, enum plugin_protocol setting, bool has_compute_unit)
{
	*versions = (struct plugin_versions){ .first = setting };
	if (setting != PLUGIN_PROTOCOL_AUTO)
		return;
	versions->negotiates = has_compute_unit;
	versions->first = has_compute_unit ? CANDIDATES[0] : PLUGIN_PROTOCOL_2_0;
}

/* The one asked longest ago makes room for a new one. */
static struct plugin_versions_pod *find(struct plugin_versions *versions, const char *uid)
{
	struct plugin_versions_pod *oldest = &versions->pods[0];

	versions->asked++;
	for (size_t i = 0; i < PLUGIN_VERSIONS_PODS; i++) {
		struct plugin_versions_pod *pod = &versions->pods[i];

		if (pod->last_asked != 0 && strncmp(pod->uid, uid, sizeof pod->uid - 1) == 0) {
			pod->last_asked = versions->asked;
			return pod;
		}
		if (pod->last_asked < oldest->last_asked)
			oldest = pod;
	}
	*oldest = (struct plugin_versions_pod){ .last_asked = versions->asked, .current = versions->first };
	(void)snprintf(oldest->uid, sizeof oldest->uid, "%s", uid);
	return oldest;
}

static unsigned bit_of(enum plugin_protocol version)
{
	return 1U << (unsigned)version;
}

static bool is_refused(const struct plugin_versions_pod *pod, enum plugin_protocol version)
{
	return (pod->refused & bit_of(version)) != 0;
}

enum plugin_protocol plugin_versions_current(struct plugin_versions *versions, const char *uid)
{
	return find(versions, uid)->current;
}

bool plugin_versions_accepted(struct plugin_versions *versions, const char *uid, enum plugin_protocol sent)
{
	struct plugin_versions_pod *pod = find(versions, uid);

	bool news;

	if (!versions->negotiates)
		return false;
	news = !pod->confirmed || pod->current != sent;
	pod->current = sent;
	pod->confirmed = true;
	pod->refused = 0;
	return news;
}

bool plugin_versions_refused(struct plugin_versions *versions, const char *uid, enum plugin_protocol sent,
                             struct slice body, enum plugin_protocol *ret_next)
{
	struct plugin_versions_pod *pod = find(versions, uid);
	enum plugin_protocol next = PLUGIN_PROTOCOL_AUTO;
	enum refusal refusal;

	if (!versions->negotiates)
		return false;
	refusal = read_refusal(body, sent, &next);
	if (refusal == REFUSAL_OF_SOMETHING_ELSE)
		return false;
	/* Another runner was told before: what it found is as good for this one. */
	if (pod->current != sent && !is_refused(pod, pod->current)) {
		*ret_next = pod->current;
		return true;
	}
	/* A version that worked isn't given up for anything but the plugin's naming others. */
	if (pod->confirmed && refusal != REFUSAL_NAMES_RANGE)
		return false;
	pod->refused |= bit_of(sent);
	if (next == PLUGIN_PROTOCOL_AUTO || is_refused(pod, next))
		return false;
	pod->current = next;
	*ret_next = next;
	return true;
}

bool plugin_versions_complain_of_unit(struct plugin_versions *versions, const char *uid)
{
	struct plugin_versions_pod *pod = find(versions, uid);
	bool first = !pod->unit_complaint;

	pod->unit_complaint = true;
	return first;
}
