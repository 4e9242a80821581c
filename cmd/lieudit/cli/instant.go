package cli

import (
	"fmt"
	"time"
)

const instantHelp = `Times are RFC 3339 (2026-11-21T12:25:03+01:00), or in this machine's time zone: 2026-11-21 12:25:03,
2026-11-21 12:25, or 2026-11-21 for the first instant of the day.`

// parseInstant reads a time as people write it; see instantHelp. Without one it is zero.
func (p Program) parseInstant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil && !t.IsZero() {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, p.TimeZone); err == nil && !t.IsZero() {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-11-21T12:25:03+01:00, 2026-11-21 12:25:03 or 2026-11-21", text)
}

// formatTime is a time to the minute.
func (p Program) formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02 15:04")
}

// formatExactTime is a time that can be given back to --as-of, --from and --to without loss.
func (p Program) formatExactTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(p.TimeZone).Format("2006-01-02T15:04:05.000000Z07:00")
}
