package clean

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"lieudit/schemas/locations"
)

// looksJSON reports whether a text is an object or a list.
func looksJSON(s string) bool {
	return len(s) > 2 && (s[0] == '{' && s[len(s)-1] == '}' || s[0] == '[' && s[len(s)-1] == ']')
}

// pythonWords are the values that are spelled differently in Python.
var pythonWords = strings.NewReplacer("'", `"`, "None", "null", "True", "true", "False", "false")

// parsePython returns a text as JSON if it is JSON or an object that Python printed, otherwise nil.
func parsePython(s string) json.RawMessage {
	for _, text := range []string{s, pythonWords.Replace(s)} {
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	return nil
}

// ownHours is a value that is horaires of the API already, without spaces; otherwise nil.
func ownHours(value json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	h, err := locations.ParseHours(value)
	isEmpty := h.Text == "" && len(h.Weekly) == 0 && len(h.Exceptions) == 0
	if err != nil || isEmpty || json.Compact(&out, value) != nil || out.Len() > maxHours {
		return nil
	}
	return out.Bytes()
}

// readHoursJSON reads hours that other programs keep as JSON: a text or a list of texts (Google's weekday_text), an object by the names
// of days, or objects that name their days, as openingHoursSpecification of schema.org does.
func readHoursJSON(value json.RawMessage) (w week, ok bool) {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return w, false
	}
	return readHoursValue(v)
}

// wrappers are members that hold all the hours of an object.
var wrappers = []string{"openingHoursSpecification", "weekday_text", "weekdayDescriptions", "openingHours", "opening_hours", "horaires"}

// readHoursValue reads a decoded JSON value. A wrapper inside a wrapper is read too.
func readHoursValue(v any) (w week, ok bool) {
	switch v := v.(type) {
	case string:
		return readHoursText(v)
	case []any:
		if text, isText := joinTexts(v); isText {
			return readHoursText(text)
		}
		if text, isDirectory := joinDirectoryRanges(v); isDirectory {
			return readHoursText(text)
		}
		return readDayObjects(v)
	case map[string]any:
		for _, name := range wrappers {
			if inner, has := v[name]; has {
				return readHoursValue(inner)
			}
		}
		if _, hasDays := firstMember(v, dayMembers); hasDays {
			return readDayObjects([]any{v})
		}
		return readDayMembers(v)
	}
	return w, false
}

// directoryTimes are the members with the times of a range of days in the national directory of public services.
var directoryTimes = [2][2]string{{"valeur_heure_debut_1", "valeur_heure_fin_1"}, {"valeur_heure_debut_2", "valeur_heure_fin_2"}}

// joinDirectoryRanges writes the ranges of days of the national directory of public services as lines: lundi-jeudi 08:30:00-12:00:00. A range
// with a remark or other members does not count.
func joinDirectoryRanges(list []any) (text string, ok bool) {
	for _, item := range list {
		object, _ := item.(map[string]any)
		first, _ := object["nom_jour_debut"].(string)
		last, _ := object["nom_jour_fin"].(string)
		remark, _ := object["commentaire"].(string)
		if first == "" || remark != "" || len(object) > 7 {
			return "", false
		}
		text += first + "-" + cmp.Or(last, first)
		for _, members := range directoryTimes {
			from, _ := object[members[0]].(string)
			to, _ := object[members[1]].(string)
			if from != "" || to != "" {
				text += " " + from + "-" + to
			}
		}
		text += "\n"
	}
	return text, len(list) > 0
}

// joinTexts is the lines of a list of texts.
func joinTexts(list []any) (string, bool) {
	var lines []string
	for _, item := range list {
		line, isText := item.(string)
		if !isText {
			return "", false
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), len(lines) > 0
}

// The names of members of objects with hours, in the order of the search.
var (
	dayMembers  = []string{"dayOfWeek", "day", "days", "jour", "jours", "weekday"}
	fromMembers = []string{"opens", "open", "ouverture", "debut", "début", "de", "from", "start", "heure_debut", "heureDebut"}
	toMembers   = []string{"closes", "close", "fermeture", "fin", "a", "à", "to", "end", "heure_fin", "heureFin"}
	typeMembers = []string{"@type", "@id"}
)

// firstMember is the first member of some names.
func firstMember(object map[string]any, names []string) (any, bool) {
	for _, name := range names {
		if v, has := object[name]; has {
			return v, true
		}
	}
	return nil, false
}

// readDayMembers reads an object whose members are the names of days. Days without a value are closed.
func readDayMembers(object map[string]any) (w week, ok bool) {
	var seen daySet
	for name, value := range object {
		days, hasHolidays, ok := readDayNames(name)
		if !ok || seen&days != 0 {
			return w, false
		}
		seen, w.hasHolidays = seen|days, w.hasHolidays || hasHolidays
		spans, ok := readSpans(value)
		if !ok {
			return w, false
		}
		addSpans(&w, days, spans)
	}
	return w, w.isValid()
}

// readDayNames reads the names of one day or several: lundi, Monday, Mo-Fr, https://schema.org/Monday.
func readDayNames(text string) (days daySet, hasHolidays, ok bool) {
	name := text[strings.LastIndex(text, "/")+1:]
	if name == "PublicHolidays" {
		return 0, true, true
	}
	tokens, ok := splitHours(name)
	if !ok || len(tokens) == 0 || !isDays(tokens[0].kind) {
		return 0, false, false
	}
	p := hoursParser{tokens: tokens}
	days, hasHolidays, ok = p.readDaySet()
	return days, hasHolidays, ok && len(p.tokens) == 0
}

// readDayObjects reads objects that name their days, and add to one another.
func readDayObjects(list []any) (w week, ok bool) {
	for _, item := range list {
		object, isObject := item.(map[string]any)
		if !isObject || !readDayObject(&w, object) {
			return w, false
		}
	}
	return w, w.isValid()
}

// readDayObject reads an object that names its days. One with further members, such as the dates for which it holds, is not read.
func readDayObject(w *week, object map[string]any) bool {
	named, has := firstMember(object, dayMembers)
	if !has {
		return false
	}
	names, isList := named.([]any)
	if !isList {
		names = []any{named}
	}
	times := map[string]any{}
	for name, value := range object {
		if !slices.Contains(dayMembers, name) && !slices.Contains(typeMembers, name) {
			times[name] = value
		}
	}
	spans, ok := readSpans(times)
	for _, name := range names {
		text, isText := name.(string)
		days, hasHolidays, isDay := readDayNames(text)
		if !ok || !isText || !isDay {
			return false
		}
		w.hasHolidays = w.hasHolidays || hasHolidays
		addSpans(w, days, spans)
	}
	return true
}

// addSpans adds times to days.
func addSpans(w *week, days daySet, spans []span) {
	for day := range 7 {
		if days&(1<<day) != 0 {
			w.spans[day] = append(w.spans[day], spans...)
		}
	}
}

// readSpans reads the times of a day: a text, a pair of times, an object with the beginning and the end, or a list of any of these. No
// value is closed.
func readSpans(value any) ([]span, bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case bool:
		return nil, !v
	case string:
		if v = strings.TrimSpace(v); v == "" || IsEmptySign(v) {
			return nil, true
		}
		return readDayText(v)
	case map[string]any:
		return readSpanObject(v)
	case []any:
		if len(v) == 2 {
			if s, ok := readPair(v[0], v[1]); ok {
				return []span{s}, true
			}
		}
		return readSpanList(v)
	}
	return nil, false
}

// readSpanList reads a list whose items are times of the same day.
func readSpanList(list []any) (spans []span, ok bool) {
	for _, item := range list {
		more, ok := readSpans(item)
		if !ok {
			return nil, false
		}
		spans = append(spans, more...)
	}
	return spans, true
}

// readSpanObject reads an object with a beginning and an end, or one that only marks the day as closed.
func readSpanObject(object map[string]any) ([]span, bool) {
	if closed, isBool := object["closed"].(bool); isBool && len(object) == 1 {
		return nil, closed
	}
	from, hasFrom := firstMember(object, fromMembers)
	to, hasTo := firstMember(object, toMembers)
	if !hasFrom || !hasTo || len(object) != 2 {
		return nil, false
	}
	if from == nil && to == nil || from == "" && to == "" {
		return nil, true
	}
	s, ok := readPair(from, to)
	return []span{s}, ok
}

// readPair reads two values that are one time each.
func readPair(from, to any) (span, bool) {
	a, isFrom := readTime(from)
	b, isTo := readTime(to)
	if !isFrom || !isTo {
		return span{}, false
	}
	return newSpan(a, b)
}

// readTime reads a time in minutes from midnight.
func readTime(value any) (int, bool) {
	text, isText := value.(string)
	tokens, ok := splitHours(strings.TrimSpace(text))
	return firstMinutes(tokens), isText && ok && len(tokens) == 1 && tokens[0].kind == timeToken
}

// firstMinutes is the time of the first token, 0 if there is none.
func firstMinutes(tokens []token) int {
	if len(tokens) == 0 {
		return 0
	}
	return tokens[0].minutes
}
