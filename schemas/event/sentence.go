package event

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// Sentence says what happened as an auditor reads it: the catalog's sentence with the event's own values.
// What the event does not tell reads as "–".
func Sentence(e Event) string {
	t, ok := byName[e.EventType()]
	if !ok {
		return e.EventType()
	}
	fields := decodeFields(e)
	return placeholder.ReplaceAllStringFunc(t.Sentence, func(p string) string {
		return formatValue(fields[p[1:len(p)-1]])
	})
}

func decodeFields(e Event) map[string]any {
	data, err := json.Marshal(e)
	if err != nil {
		return nil
	}
	var fields map[string]any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return nil
	}
	return fields
}

func formatValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case []any:
		words := make([]string, len(v))
		for i, w := range v {
			words[i] = formatValue(w)
		}
		return strings.Join(words, ", ")
	case string:
		if v == "" {
			return "–"
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}
