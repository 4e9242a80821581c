package locations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Hours are the opening hours of a site. A day without hours is closed, unless there is a text alone.
type Hours struct {
	Timezone   string           `json:"fuseau,omitempty"` // of IANA, such as Indian/Reunion; "": that of the site's position
	Weekly     []WeeklyHours    `json:"hebdo,omitempty"`
	Exceptions []HoursException `json:"exceptions,omitempty"` // they replace the weekly hours of their days
	Text       string           `json:"texte,omitempty"`      // what the other members cannot say
}

// WeeklyHours are hours on some days of every week.
type WeeklyHours struct {
	Days []string `json:"jours"` // of Weekdays
	From string   `json:"de"`    // 09:00
	To   string   `json:"a"`     // 12:30, up to 24:00; of the next day where it is before From
}

// HoursException says of the days from First to Last either that the site is closed or when it is open.
type HoursException struct {
	First  string `json:"du"`           // 2026-12-25
	Last   string `json:"au,omitempty"` // "": First
	Closed bool   `json:"ferme,omitempty"`
	From   string `json:"de,omitempty"`
	To     string `json:"a,omitempty"`
}

// Weekdays are the days of a week as hours name them, Monday first.
var Weekdays = [7]string{"lu", "ma", "me", "je", "ve", "sa", "di"}

const (
	maxWeeklyHours     = 100
	maxHoursExceptions = 400
	maxHoursText       = 2000 // bytes
)

// ParseHours reads opening hours from their JSON and checks them. Its error is the text of a broken rule. No text, null and {}
// are no hours.
func ParseHours(text json.RawMessage) (h Hours, err error) {
	if len(text) == 0 {
		return h, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return h, errors.New("hours are {fuseau, hebdo: [{jours, de, a}], exceptions: [{du, au, ferme | de, a}], texte}")
	}
	if _, err := d.Token(); err != io.EOF {
		return h, errors.New("hours are one object")
	}
	return h, h.check()
}

func (h Hours) check() error {
	switch {
	case len(h.Weekly) > maxWeeklyHours || len(h.Exceptions) > maxHoursExceptions:
		return fmt.Errorf("hebdo has at most %d entries and exceptions %d", maxWeeklyHours, maxHoursExceptions)
	case len(h.Text) > maxHoursText:
		return fmt.Errorf("texte has at most %d bytes", maxHoursText)
	}
	if _, err := time.LoadLocation(h.Timezone); err != nil || h.Timezone == "Local" {
		return fmt.Errorf("%q is no time zone such as Europe/Paris", h.Timezone)
	}
	for i, w := range h.Weekly {
		if err := w.check(); err != nil {
			return fmt.Errorf("hebdo %d: %w", i, err)
		}
	}
	for i, e := range h.Exceptions {
		if err := e.check(); err != nil {
			return fmt.Errorf("exceptions %d: %w", i, err)
		}
	}
	return nil
}

func (w WeeklyHours) check() error {
	if len(w.Days) == 0 {
		return errors.New("jours is empty")
	}
	for i, day := range w.Days {
		if !slices.Contains(Weekdays[:], day) || slices.Contains(w.Days[:i], day) {
			return fmt.Errorf("jours are among lu, ma, me, je, ve, sa, di, none twice: %q", day)
		}
	}
	return checkSpan(w.From, w.To)
}

func (e HoursException) check() error {
	first, err := time.Parse(time.DateOnly, e.First)
	if err != nil {
		return fmt.Errorf("du is a day such as 2026-12-25, not %q", e.First)
	}
	if e.Last != "" {
		last, err := time.Parse(time.DateOnly, e.Last)
		if err != nil || last.Before(first) {
			return fmt.Errorf("au is a day such as 2026-12-25, du or later, not %q", e.Last)
		}
	}
	switch hasSpan := e.From != "" || e.To != ""; {
	case e.Closed && hasSpan, !e.Closed && !hasSpan:
		return errors.New("either ferme or de and a")
	case e.Closed:
		return nil
	}
	return checkSpan(e.From, e.To)
}

// checkSpan checks times of opening and closing. Equal ones say nothing: a whole day is 00:00 to 24:00.
func checkSpan(from, to string) error {
	switch {
	case !isTime(from):
		return fmt.Errorf("de is a time such as 09:00, not %q", from)
	case !isTime(to) && to != "24:00":
		return fmt.Errorf("a is a time such as 12:30, at most 24:00, not %q", to)
	case from == to:
		return fmt.Errorf("de and a are both %s", from)
	}
	return nil
}

// isTime reports whether a text is a time of the day from 00:00 to 23:59.
func isTime(text string) bool {
	if len(text) != 5 || text[2] != ':' {
		return false
	}
	for _, i := range []int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text[:2] < "24" && text[3] < '6'
}
