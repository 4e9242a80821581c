package plan

import (
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // Europe/Paris on a machine without zone files
)

// Paris is the zone in which days and periods begin. Its rules are linked into the program, so loading it cannot fail.
var Paris, _ = time.LoadLocation("Europe/Paris")

// Date is a calendar day in Europe/Paris. As text and in JSON it is written 2026-11-21. The zero Date is not a day.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf is the day in Europe/Paris at an instant.
func DateOf(t time.Time) Date {
	y, m, d := t.In(Paris).Date()
	return Date{y, m, d}
}

// ParseDate reads 2026-11-21.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, fmt.Errorf("date %q is not of the form 2026-11-21", s)
	}
	y, m, d := t.Date()
	return Date{y, m, d}, nil
}

// Start is the instant the day begins: midnight, which clock changes in France never affect.
func (d Date) Start() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, Paris) }

func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, int(d.Month), d.Day) }

// MarshalText writes 2026-11-21. It fails for the zero Date.
func (d Date) MarshalText() ([]byte, error) {
	if d == (Date{}) {
		return nil, errors.New("date is not set")
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads 2026-11-21.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

// Period is one month of an account, from the beginning of First to the beginning of Next.
type Period struct {
	First, Next Date
}

// Name is the name of a period in answers: its first day.
func (p Period) Name() string { return p.First.String() }

// Start is the first instant of the period.
func (p Period) Start() time.Time { return p.First.Start() }

// End is the first instant after it.
func (p Period) End() time.Time { return p.Next.Start() }

// PeriodAt is the period that an instant falls in. Periods begin on the anchor's day of each month, or on the last day of a
// shorter month. Each is counted from the anchor, so that an anchor on the 31st gives the 31st again after February.
func PeriodAt(anchor Date, at time.Time) Period {
	day := DateOf(at)
	months := (day.Year-anchor.Year)*12 + int(day.Month) - int(anchor.Month)
	if day.Day < anchor.addMonths(months).Day {
		months--
	}
	return Period{anchor.addMonths(months), anchor.addMonths(months + 1)}
}

// PeriodIn is the period that begins in a month such as 2026-11. Every month has one.
func PeriodIn(anchor Date, month string) (Period, error) {
	t, err := time.Parse("2006-01", month)
	if err != nil {
		return Period{}, fmt.Errorf("month %q is not of the form 2026-11", month)
	}
	months := (t.Year()-anchor.Year)*12 + int(t.Month()) - int(anchor.Month)
	return Period{anchor.addMonths(months), anchor.addMonths(months + 1)}, nil
}

// addMonths returns the same day of another month, or that month's last day if it is shorter. months may be negative.
func (d Date) addMonths(months int) Date {
	first := time.Date(d.Year, d.Month+time.Month(months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	return Date{first.Year(), first.Month(), min(d.Day, last)}
}
