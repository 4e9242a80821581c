package locations_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"lieudit/schemas/locations"
)

// isOpenAt is whether a site in Paris with some hours is open at an instant of UTC.
func isOpenAt(hours, instant string) bool {
	at, err := time.Parse("2006-01-02 15:04:05", instant)
	if err != nil {
		panic(err)
	}
	return locations.NewOpening(json.RawMessage(hours), locations.DefaultZone).IsOpen(locations.NewMoment(at))
}

func TestASiteIsOpenByTheClockOfItsZone(t *testing.T) {
	t.Parallel()
	const (
		monday  = `{"hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"},{"jours":["lu","ma"],"de":"14:00","a":"19:00"}]}`
		night   = `{"hebdo":[{"jours":["sa"],"de":"22:00","a":"04:00"}],"exceptions":[{"du":"2026-12-26","ferme":true}]}`
		always  = `{"hebdo":[{"jours":["lu","ma","me","je","ve","sa","di"],"de":"00:00","a":"24:00"}]}`
		evening = `{"hebdo":[{"jours":["lu"],"de":"18:00","a":"00:00"}]}`
		holiday = `{"hebdo":[{"jours":["ve"],"de":"09:00","a":"19:00"}],"exceptions":[{"du":"2026-12-24","au":"2026-12-26","de":"10:00","a":"12:00"},{"du":"2026-12-25","de":"15:00","a":"16:00"},{"du":"2027-01-01","ferme":true}]}`
		reunion = `{"fuseau":"Indian/Reunion","hebdo":[{"jours":["lu"],"de":"09:00","a":"12:30"}]}`
	)
	for _, c := range []struct {
		hours, instant string // of UTC
		want           bool
	}{
		// Monday 2026-11-23; Paris is an hour before UTC
		{monday, "2026-11-23 07:59:59", false}, {monday, "2026-11-23 08:00:00", true}, {monday, "2026-11-23 11:29:59", true}, {monday, "2026-11-23 11:30:00", false},
		{monday, "2026-11-23 13:00:00", true}, {monday, "2026-11-24 08:30:00", false}, {monday, "2026-11-24 13:00:00", true}, {monday, "2026-11-25 13:00:00", false},
		// in summer two hours
		{monday, "2026-07-06 07:00:00", true}, {monday, "2026-07-06 10:30:00", false},
		// over midnight, and into a day that is an exception: the night belongs to the day before
		{night, "2026-11-28 20:59:00", false}, {night, "2026-11-28 21:00:00", true}, {night, "2026-11-29 02:59:00", true}, {night, "2026-11-29 03:00:00", false},
		{night, "2026-11-28 02:00:00", false}, {night, "2026-12-26 22:00:00", false}, {night, "2026-12-27 01:00:00", false},
		// the night in which clocks go forward, and the one in which they go back
		{night, "2026-03-29 00:59:00", true}, {night, "2026-03-29 01:00:00", true}, {night, "2026-03-29 01:59:00", true}, {night, "2026-03-29 02:00:00", false},
		{night, "2026-10-25 01:30:00", true}, {night, "2026-10-25 02:59:00", true}, {night, "2026-10-25 03:00:00", false},
		{always, "2026-11-22 22:59:59", true}, {always, "2026-11-22 23:00:00", true},
		{evening, "2026-11-23 22:59:00", true}, {evening, "2026-11-23 23:00:00", false}, {evening, "2026-11-22 23:30:00", false},
		// exceptions replace the weekly hours of their days, and add up
		{holiday, "2026-12-25 08:30:00", false}, {holiday, "2026-12-25 09:00:00", true}, {holiday, "2026-12-25 14:30:00", true}, {holiday, "2026-12-24 14:30:00", false},
		{holiday, "2026-12-26 09:30:00", true}, {holiday, "2027-01-01 09:30:00", false}, {holiday, "2026-12-18 08:30:00", true},
		// another zone
		{reunion, "2026-11-23 05:00:00", true}, {reunion, "2026-11-23 08:30:00", false},
		// nothing is known
		{``, "2026-11-23 09:00:00", false}, {`null`, "2026-11-23 09:00:00", false}, {`{"texte":"9h-12h"}`, "2026-11-23 09:00:00", false}, {`"9h-12h"`, "2026-11-23 09:00:00", false},
		{`{"hebdo":[{"jours":["lundi"],"de":"9","a":"12"}]}`, "2026-11-23 09:00:00", false},
		{`{"fuseau":"Mende","hebdo":[{"jours":["lu"],"de":"00:00","a":"24:00"}]}`, "2026-11-23 09:00:00", false},
	} {
		if got := isOpenAt(c.hours, c.instant); got != c.want {
			t.Errorf("%s at %s: got %v, want %v", c.hours, c.instant, got, c.want)
		}
	}
}

func TestHoursWithoutAZoneAreInThatOfTheAddressElseOfThePosition(t *testing.T) {
	t.Parallel()
	const noon = `{"hebdo":[{"jours":["lu","ma","me","je","ve","sa","di"],"de":"12:00","a":"12:01"}]}`
	for _, c := range []struct {
		insee, postcode string
		lat, lon        float64
		want            string // the time of UTC when it is noon there, on 2026-07-06
	}{
		{"48095", "48000", 0, 0, "10:00"}, {"", "48000", -21, 55.5, "10:00"}, {"", "", 0, 0, "10:00"}, {"", "1000", 0, 0, "10:00"}, {"", "98000", 43.7, 7.4, "10:00"},
		{"97411", "", 0, 0, "08:00"}, {"", "97400", 0, 0, "08:00"}, {"", "", -20.9, 55.45, "08:00"}, {"97411", "97110", 0, 0, "08:00"},
		{"", "97110", 0, 0, "16:00"}, {"", "97200", 0, 0, "16:00"}, {"", "97300", 0, 0, "15:00"}, {"", "97500", 0, 0, "14:00"}, {"", "97600", 0, 0, "09:00"},
		{"", "97150", 0, 0, "16:00"}, {"", "", 18.07, -63.08, "16:00"}, {"", "98600", 0, 0, "00:00"}, {"", "98713", 0, 0, "22:00"}, {"", "98800", 0, 0, "01:00"},
	} {
		a := &locations.SiteAddress{InseeCode: c.insee, PostalCode: c.postcode}
		at, _ := time.Parse("2006-01-02 15:04", "2026-07-06 "+c.want)
		s := locations.Site{Content: locations.Content{Hours: json.RawMessage(noon), Address: a, Lat: &c.lat, Lon: &c.lon}}
		if !locations.OpeningOf(s).IsOpen(locations.NewMoment(at)) {
			t.Errorf("%+v: it is not noon", c)
		}
	}
}

// isOpenByCalendar is the same as Opening.IsOpen, worked out from the instants at which each day's hours begin and end.
func isOpenByCalendar(h locations.Hours, at time.Time, zone *time.Location) bool {
	local := at.In(zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC) // without summer time
	for _, back := range []int{0, 1} {
		day := time.Date(wall.Year(), wall.Month(), wall.Day()-back, 0, 0, 0, 0, time.UTC)
		holds := func(from, to string) bool {
			var begins, ends time.Duration
			for _, c := range []struct {
				text string
				into *time.Duration
			}{{from, &begins}, {to, &ends}} {
				var hours, minutes int
				fmt.Sscanf(c.text, "%d:%d", &hours, &minutes)
				*c.into = time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
			}
			if ends <= begins {
				ends += 24 * time.Hour
			}
			return !wall.Before(day.Add(begins)) && wall.Before(day.Add(ends))
		}
		isException, isOpen := false, false
		for _, e := range h.Exceptions {
			last := e.Last
			if last == "" {
				last = e.First
			}
			if date := day.Format(time.DateOnly); e.First <= date && date <= last {
				isException = true
				isOpen = isOpen || !e.Closed && holds(e.From, e.To)
			}
		}
		for _, w := range h.Weekly {
			for _, d := range w.Days {
				isOpen = isOpen || !isException && d == locations.Weekdays[(int(day.Weekday())+6)%7] && holds(w.From, w.To)
			}
		}
		if isOpen {
			return true
		}
	}
	return false
}

func FuzzOpening(f *testing.F) {
	f.Add(`{"fuseau":"Europe/Paris","hebdo":[{"jours":["lu","sa"],"de":"22:00","a":"02:30"}],"exceptions":[{"du":"2026-12-25","ferme":true},{"du":"2026-12-24","au":"2026-12-26","de":"23:00","a":"01:00"}]}`, int64(1798160400))
	f.Add(`{"hebdo":[{"jours":["di"],"de":"00:00","a":"24:00"}],"exceptions":[{"du":"0000-01-01","de":"00:00","a":"00:01"}]}`, int64(-62167219200))
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		h, err := locations.ParseHours(json.RawMessage(text))
		at := time.Unix(unix%4_000_000_000, 0)
		got := locations.NewOpening(json.RawMessage(text), locations.DefaultZone).IsOpen(locations.NewMoment(at))
		if h.Timezone == "" {
			h.Timezone = locations.DefaultZone
		}
		zone, zoneErr := time.LoadLocation(h.Timezone)
		if err != nil || zoneErr != nil {
			return
		}
		if want := isOpenByCalendar(h, at, zone); got != want {
			t.Errorf("%s at %v: got %v, want %v", text, at.In(zone), got, want)
		}
	})
}

func BenchmarkNewOpening(b *testing.B) {
	hours := json.RawMessage(`{"hebdo":[{"jours":["lu","ma"],"de":"08:00","a":"12:30"},{"jours":["lu"],"de":"14:00","a":"19:00"}]}`)
	for b.Loop() {
		locations.NewOpening(hours, locations.DefaultZone)
	}
}

func BenchmarkIsOpen(b *testing.B) {
	o := locations.NewOpening(json.RawMessage(`{"hebdo":[{"jours":["lu","ma"],"de":"08:00","a":"12:30"},{"jours":["lu"],"de":"14:00","a":"19:00"}]}`), locations.DefaultZone)
	m := locations.NewMoment(time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC))
	for b.Loop() {
		o.IsOpen(m)
	}
}
