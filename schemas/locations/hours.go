package locations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"lieudit/schemas/body/shape"
)

// Hours are the opening hours of a site. A day without hours is closed, unless there is only a text.
type Hours struct {
	Timezone   string           `json:"fuseau,omitempty"` // of IANA, such as Indian/Reunion; "": that of the site's position
	Weekly     []WeeklyHours    `json:"hebdo,omitempty"`
	Exceptions []HoursException `json:"exceptions,omitempty"` // they replace the weekly hours of their days
	Text       string           `json:"texte,omitempty"`      // what the other members cannot express
}

// WeeklyHours are hours on some days of every week.
type WeeklyHours struct {
	Days []string `json:"jours"` // of Weekdays
	From string   `json:"de"`    // 09:00
	To   string   `json:"a"`     // 12:30, up to 24:00; of the next day if it is before From
}

// HoursException tells either that the site is closed on the days from First to Last or when it is open.
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

// ParseHours reads opening hours from their JSON and checks them. Its error is the text of a broken rule. Empty text, null and
// {} are no hours.
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

// check returns the first rule that the hours break, and the member that breaks it.
func (h Hours) check() error {
	if err := firstFault(h.MemberFaults(), nil); err != nil {
		return err
	}
	for i, w := range h.Weekly {
		if err := firstFault(w.MemberFaults(), nil); err != nil {
			return fmt.Errorf("hebdo %d: %w", i, err)
		}
	}
	for i, e := range h.Exceptions {
		if err := firstFault(e.MemberFaults(), e.BrokenRules()); err != nil {
			return fmt.Errorf("exceptions %d: %w", i, err)
		}
	}
	return nil
}

// firstFault returns the first of some broken rules as an error, or nil.
func firstFault(members []shape.MemberFault, rules []string) error {
	switch {
	case len(members) > 0:
		return errors.New(members[0].Rule)
	case len(rules) > 0:
		return errors.New(rules[0])
	}
	return nil
}

// MemberFaults checks how much the members hold, and the time zone.
func (h Hours) MemberFaults() (faults []shape.MemberFault) {
	if len(h.Weekly) > maxWeeklyHours {
		faults = append(faults, shape.MemberFault{Member: "hebdo", Rule: fmt.Sprintf("hebdo has at most %d entries", maxWeeklyHours)})
	}
	if len(h.Exceptions) > maxHoursExceptions {
		faults = append(faults, shape.MemberFault{Member: "exceptions", Rule: fmt.Sprintf("exceptions has at most %d entries", maxHoursExceptions)})
	}
	if len(h.Text) > maxHoursText {
		faults = append(faults, shape.MemberFault{Member: "texte", Rule: fmt.Sprintf("texte has at most %d bytes", maxHoursText)})
	}
	if _, err := time.LoadLocation(h.Timezone); err != nil || h.Timezone == "Local" {
		faults = append(faults, shape.MemberFault{Member: "fuseau", Rule: fmt.Sprintf("%q is no time zone such as Europe/Paris", h.Timezone)})
	}
	return faults
}

// MemberFaults checks the days and the times.
func (w WeeklyHours) MemberFaults() (faults []shape.MemberFault) {
	if len(w.Days) == 0 {
		faults = append(faults, shape.MemberFault{Member: "jours", Rule: "jours is empty"})
	}
	for i, day := range w.Days {
		if !slices.Contains(Weekdays[:], day) || slices.Contains(w.Days[:i], day) {
			faults = append(faults, shape.MemberFault{Member: "jours", Rule: fmt.Sprintf("jours are among lu, ma, me, je, ve, sa, di, none twice: %q", day)})
			break
		}
	}
	return append(faults, spanFaults(w.From, w.To)...)
}

// MemberFaults checks the days, and the times if the exception has any.
func (e HoursException) MemberFaults() (faults []shape.MemberFault) {
	first, err := time.Parse(time.DateOnly, e.First)
	if err != nil {
		faults = append(faults, shape.MemberFault{Member: "du", Rule: fmt.Sprintf("du is a day such as 2026-12-25, not %q", e.First)})
	}
	if last, err := time.Parse(time.DateOnly, e.Last); e.Last != "" && (err != nil || last.Before(first)) {
		faults = append(faults, shape.MemberFault{Member: "au", Rule: fmt.Sprintf("au is a day such as 2026-12-25, du or later, not %q", e.Last)})
	}
	if !e.Closed && e.hasSpan() {
		faults = append(faults, spanFaults(e.From, e.To)...)
	}
	return faults
}

// BrokenRules checks that an exception either is closed or has times.
func (e HoursException) BrokenRules() []string {
	if e.Closed == e.hasSpan() {
		return []string{"either ferme or de and a"}
	}
	return nil
}

func (e HoursException) hasSpan() bool { return e.From != "" || e.To != "" }

// spanFaults checks times of opening and closing. Equal ones are refused: a whole day is 00:00 to 24:00.
func spanFaults(from, to string) (faults []shape.MemberFault) {
	if !isTime(from) {
		faults = append(faults, shape.MemberFault{Member: "de", Rule: fmt.Sprintf("de is a time such as 09:00, not %q", from)})
	}
	if !isTime(to) && to != "24:00" {
		faults = append(faults, shape.MemberFault{Member: "a", Rule: fmt.Sprintf("a is a time such as 12:30, at most 24:00, not %q", to)})
	}
	if len(faults) == 0 && from == to {
		faults = append(faults, shape.MemberFault{Member: "a", Rule: fmt.Sprintf("de and a are both %s", from)})
	}
	return faults
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
