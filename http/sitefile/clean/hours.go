package clean

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lieudit/schemas/locations"
)

// maxHours is the most bytes of horaires in the API, by the tag of locations.Content.
const maxHours = 16 << 10

// Hours reads opening hours and returns the member horaires of a site. A text is read if all of it is hours by weekday: the form of
// OSM and schema.org (Mo-Fr 09:00-12:30,14:00-19:00; Sa 09:00-12:00), French and English sentences and lists (Du lundi au vendredi
// de 9h à 12h30 et de 14h à 19h, samedi 9h-12h), 24h/24. asJSON is the value if it is JSON, otherwise nil: hours by the name of a day,
// openingHoursSpecification, a list of texts, or horaires itself; a text may hold such JSON too.
//
// ok reports whether the hours were read. If not, the result has only the member texte with the whole text: months, seasons, "by
// appointment", a day without hours. A week cannot hold the hours of public holidays, so a text with them is kept as texte
// along with the hours of the week. Times without days, 10:00-20:00, stay a text too: OSM means every day by them, people often do not.
// The result is nil for an empty text, a mere yes or no, or a text longer than horaires can hold.
func Hours(s string, asJSON json.RawMessage) (hours json.RawMessage, ok bool) {
	s = strings.TrimSpace(s)
	if asJSON == nil && looksJSON(s) {
		asJSON = parsePython(s)
	}
	if asJSON != nil {
		if own := ownHours(asJSON); own != nil {
			return own, true
		}
		if w, ok := readHoursJSON(asJSON); ok {
			return encodeHours(w, hoursText(s, asJSON))
		}
		return encodeText(hoursText(s, asJSON))
	}
	if w, ok := readHoursText(s); ok {
		return encodeHours(w, s)
	}
	return encodeText(s)
}

// saysNothing reports whether a text of hours is empty, or only says yes or no.
func saysNothing(text string) bool {
	text = strings.ToLower(text)
	return text == "" || text == "{}" || text == "[]" || IsEmptySign(text) || emptyWords[text] || flagWords[text]
}

// hoursText is the text of hours for people: the cell or, without one, the JSON, unchanged.
func hoursText(s string, asJSON json.RawMessage) string {
	var text string
	switch {
	case s != "":
		return s
	case json.Unmarshal(asJSON, &text) == nil:
		return text
	}
	return string(asJSON)
}

// WeekdayHours reads the hours of seven days, Monday first, each from a column of its own: 09:00-12:00 / 14:00-18:00, or fermé. A day
// without a text is closed. If a day cannot be read, or holds no times but 1 or oui, ok is false and the result
// has the days as texte; if no day says more than that, it is nil.
func WeekdayHours(days [7]string) (hours json.RawMessage, ok bool) {
	var w week
	var lines []string
	isRead, hasHours := true, false
	for i, text := range days {
		text = strings.TrimSpace(text)
		if text == "" || IsEmptySign(text) {
			continue
		}
		lines = append(lines, frenchDays[i]+" : "+text)
		spans, ok := readDayText(text)
		w.spans[i], isRead = spans, isRead && ok
		hasHours = hasHours || !saysNothing(text)
	}
	switch {
	case !hasHours:
		return nil, false
	case isRead && w.isValid():
		return encodeHours(w, "")
	}
	return encodeText(strings.Join(lines, "\n"))
}

// frenchDays are the days in texts for people, Monday first.
var frenchDays = [7]string{"lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"}

// flagWords are ways to say that a site is open, without hours. emptyWords has the ways to say that it is not.
var flagWords = wordSet("1 1.0 0.0 oui o true vrai yes y ouvert")

// span is a time of a day in minutes from midnight. to is over 24 hours if the span ends on the next day.
type span struct{ from, to int }

const wholeDay = 24 * 60

// week is the hours of the days, Monday first.
type week struct {
	spans       [7][]span
	hasHolidays bool // the text has hours of public holidays as well
}

// isValid reports whether some day is open, and no two spans of a day overlap. The spans of each day are sorted before.
func (w *week) isValid() bool {
	isOpen := false
	for _, spans := range w.spans {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
		for i := 1; i < len(spans); i++ {
			if spans[i].from < spans[i-1].to {
				return false
			}
		}
		isOpen = isOpen || len(spans) > 0
	}
	return isOpen
}

// weekly is the spans of a week, days with the same hours together.
func (w *week) weekly() (list []locations.WeeklyHours) {
	var done [7]bool
	for i, spans := range w.spans {
		if done[i] {
			continue
		}
		var days []string
		for j := i; j < 7; j++ {
			if slices.Equal(spans, w.spans[j]) {
				days, done[j] = append(days, locations.Weekdays[j]), true
			}
		}
		for _, s := range spans {
			list = append(list, locations.WeeklyHours{Days: days, From: formatMinutes(s.from), To: formatMinutes(s.to)})
		}
	}
	return list
}

// formatMinutes writes a time as 09:30. After midnight it is a time of the next day.
func formatMinutes(m int) string {
	if m > wholeDay {
		m -= wholeDay
	}
	return fmt.Sprintf("%02d:%02d", m/60, m%60)
}

// encodeHours is horaires of a week that was read from a text.
func encodeHours(w week, text string) (json.RawMessage, bool) {
	h := locations.Hours{Weekly: w.weekly()}
	if w.hasHolidays {
		h.Text = text
	}
	encoded := encodeJSON(h)
	return encoded, encoded != nil
}

// encodeText is horaires of a text that was not read. It is nil if the text says nothing.
func encodeText(text string) (json.RawMessage, bool) {
	if saysNothing(text) {
		return nil, false
	}
	return encodeJSON(locations.Hours{Text: text}), false
}

// encodeJSON encodes hours as JSON, or returns nil if the text is too long for the API. Characters of HTML are not
// escaped.
func encodeJSON(h locations.Hours) json.RawMessage {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(h) != nil || ownHours(out.Bytes()) == nil {
		return nil
	}
	return bytes.TrimSpace(out.Bytes())
}
