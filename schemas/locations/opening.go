package locations

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"slices"
	"time"
)

// Opening is when a site is open, in a form that is small and fast to evaluate: a chain's site takes 20 bytes. It is "" if the
// opening is unknown: the site has no hours, only a text, or hours that ParseHours does not accept.
//
// It holds the length and name of the zone, the number of weekly hours, each as a set of days (bit 0 is Monday) and two times
// in minutes, and then the exceptions, each as its first day, the number of days that follow it, and two times. Both times of
// a closed day are 0. All numbers are varints. It is only kept in memory, so its form may change.
type Opening string

// OpeningOf is the opening of a site.
func OpeningOf(s Site) Opening { return NewOpening(s.Hours, ZoneOf(s.Address, s.Lat, s.Lon)) }

// NewOpening is the opening for some hours, in a time zone unless they name their own.
func NewOpening(hours json.RawMessage, zone string) Opening {
	h, ok := decodeHours(hours)
	if !ok || len(h.Weekly) == 0 && len(h.Exceptions) == 0 {
		return ""
	}
	if h.Timezone == "" {
		h.Timezone = zone
	}
	b := append(binary.AppendUvarint(nil, uint64(len(h.Timezone))), h.Timezone...)
	b = binary.AppendUvarint(b, uint64(len(h.Weekly)))
	for _, w := range h.Weekly {
		days := uint64(0)
		for _, day := range w.Days {
			days |= 1 << slices.Index(Weekdays[:], day)
		}
		b = appendTimes(binary.AppendUvarint(b, days), w.From, w.To)
	}
	for _, e := range h.Exceptions {
		first := parseDay(e.First)
		b = binary.AppendUvarint(binary.AppendUvarint(b, first), max(first, parseDay(e.Last))-first)
		b = appendTimes(b, e.From, e.To)
	}
	return Opening(b)
}

// decodeHours decodes hours that break no rule. It does not check that the time zone exists: Moment does, once for all sites.
func decodeHours(text json.RawMessage) (h Hours, ok bool) {
	if len(text) == 0 || json.Unmarshal(text, &h) != nil {
		return h, false
	}
	zone := h.Timezone
	h.Timezone = ""
	ok = h.check() == nil
	h.Timezone = zone
	return h, ok
}

// appendTimes appends two times in minutes. A second time that is not after the first is on the next day.
func appendTimes(b []byte, from, to string) []byte {
	first, last := parseMinutes(from), parseMinutes(to)
	if from != "" && last <= first {
		last += dayMinutes
	}
	return binary.AppendUvarint(binary.AppendUvarint(b, first), last)
}

const dayMinutes = 24 * 60

// parseMinutes is a time such as 09:30 in minutes, 0 for none.
func parseMinutes(text string) uint64 {
	if text == "" {
		return 0
	}
	digit := func(i int) uint64 { return uint64(text[i] - '0') }
	return (digit(0)*10+digit(1))*60 + digit(3)*10 + digit(4)
}

// parseDay is the number of a day, 0 for none.
func parseDay(text string) uint64 {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return 0
	}
	return dayNumber(day)
}

// dayNumber is the number of an instant's day in its zone, counted from the year 0. Days before that are day 0.
func dayNumber(at time.Time) uint64 {
	year, month, day := at.Date()
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return uint64(max(0, midnight.Unix()/(24*3600)+daysToEpoch))
}

const daysToEpoch = 719_528 // from the first day of the year 0 to 1970

// Moment is an instant as clocks show it in the zones that were asked for. It is for one goroutine.
type Moment struct {
	at    time.Time
	zones map[string]wallTime
}

// wallTime is a zone's time and calendar day. isKnown is false for a zone that does not exist.
type wallTime struct {
	isKnown      bool
	day, minutes uint64
	weekday      int // 0 is Monday
}

// NewMoment is the moment of an instant.
func NewMoment(at time.Time) *Moment { return &Moment{at, map[string]wallTime{}} }

func (m *Moment) wallTimeIn(zone string) wallTime {
	if w, ok := m.zones[zone]; ok {
		return w
	}
	var w wallTime
	if location, err := time.LoadLocation(zone); err == nil {
		local := m.at.In(location)
		w = wallTime{true, dayNumber(local), uint64(local.Hour()*60 + local.Minute()), (int(local.Weekday()) + 6) % 7}
	}
	m.zones[zone] = w
	return w
}

// IsOpen reports whether a site is known to be open at a moment, by the clock of its zone. It opens at the minute de and
// closes at the minute a. After midnight, a site is still open by the hours of the day before. The exceptions of a day replace
// its weekly hours; several exceptions of one day add up.
func (o Opening) IsOpen(m *Moment) bool {
	if o == "" {
		return false
	}
	r := openingReader(o)
	zone := r.readUvarint()
	w := m.wallTimeIn(string(r[:zone]))
	r = r[zone:]
	if !w.isKnown {
		return false
	}
	return r.isOpen(w.day, w.weekday, w.minutes) || r.isOpen(w.day-1, (w.weekday+6)%7, w.minutes+dayMinutes)
}

// openingReader is the part of an Opening that is still to be read.
type openingReader string

// isOpen reports whether a day's hours include a minute, counted from that day's midnight.
func (r openingReader) isOpen(day uint64, weekday int, minute uint64) bool {
	openWeekly, openExceptionally, hasException := false, false, false
	for range r.readUvarint() {
		days, from, to := r.readUvarint(), r.readUvarint(), r.readUvarint()
		openWeekly = openWeekly || bits.RotateLeft64(days, -weekday)&1 == 1 && from <= minute && minute < to
	}
	for r != "" {
		first := r.readUvarint()
		last, from, to := first+r.readUvarint(), r.readUvarint(), r.readUvarint()
		if first <= day && day <= last {
			hasException = true
			openExceptionally = openExceptionally || from <= minute && minute < to
		}
	}
	if hasException {
		return openExceptionally
	}
	return openWeekly
}

// readUvarint reads a number. encoding/binary does not read strings.
func (r *openingReader) readUvarint() (n uint64) {
	for shift := 0; ; shift += 7 {
		b := (*r)[0]
		*r = (*r)[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
}
