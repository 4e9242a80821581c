package xlsx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A date in a spreadsheet is a number of days, and a postcode that was typed as a number has lost its zero. Only the format of the
// cell says so. This package needs only the part of a format that numberFormat holds, since it shows numbers in one way.

// numberFormat is the meaning of a cell's number, by the format that shows it.
type numberFormat struct {
	hasDate, hasTime bool
	isElapsed        bool // hours may exceed 24
	minDigits        int  // an integer is shown with zeros before it
}

// builtinFormat is a format that spreadsheets know by its number (ECMA-376 part 1, 18.8.30). Those of East Asia are dates too.
func builtinFormat(id string) numberFormat {
	n, err := strconv.Atoi(id)
	switch {
	case err != nil:
		return numberFormat{}
	case n >= 14 && n <= 17, n >= 27 && n <= 31, n == 36, n >= 50 && n <= 54, n == 57, n == 58:
		return numberFormat{hasDate: true}
	case n == 22:
		return numberFormat{hasDate: true, hasTime: true}
	case n >= 18 && n <= 21, n >= 32 && n <= 35, n == 45, n == 47, n == 55, n == 56:
		return numberFormat{hasTime: true}
	case n == 46:
		return numberFormat{hasTime: true, isElapsed: true}
	}
	return numberFormat{}
}

// parseNumberFormat reads a format's code: dd/mm/yyyy, [h]:mm, 00000. Semicolons separate several; the first is for numbers that
// are not negative. Anything in quotes or after a backslash is text.
func parseNumberFormat(code string) numberFormat {
	var f numberFormat
	hasMonthOrMinute, isFraction := false, false
	if strings.EqualFold(code, "general") || strings.EqualFold(code, "standard") {
		return f
	}
	for i := 0; i < len(code) && code[i] != ';'; i++ {
		switch c := code[i] | 0x20; {
		case code[i] == '"':
			i += max(strings.IndexByte(code[i+1:], '"'), 0) + 1
		case code[i] == '\\' || code[i] == '_' || code[i] == '*':
			i++
		case code[i] == '[':
			end := max(strings.IndexByte(code[i:], ']'), 1)
			if unit := strings.ToLower(code[i+1 : i+end]); unit != "" && strings.Trim(unit, "hms") == "" {
				f.isElapsed, f.hasTime = true, true
			}
			i += end
		case c == 'y' || c == 'd':
			f.hasDate = true
		case c == 'h' || c == 's':
			f.hasTime = true
		case c == 'm':
			hasMonthOrMinute = true
		case code[i] == '.' || code[i] == '%' || code[i] == '/' || c == 'e':
			isFraction = true
		case code[i] == '0' || f.minDigits > 0 && (code[i] == '#' || code[i] == '?'):
			f.minDigits++
		}
	}
	f.hasDate = f.hasDate || hasMonthOrMinute && !f.hasTime
	if f.hasDate || f.hasTime || isFraction {
		f.minDigits = 0
	}
	return f
}

// format is the text of a number: a date and a time as ISO 8601 writes them, an integer with its zeros, otherwise the number itself.
func (f numberFormat) format(number string, is1904 bool) string {
	number = strings.TrimSpace(number)
	if f.hasDate || f.hasTime {
		if text, ok := f.formatTime(number, is1904); ok {
			return text
		}
	}
	text := formatNumber(number)
	if missing := f.minDigits - len(text); missing > 0 && missing < 32 && isDigits(text) {
		return strings.Repeat("0", missing) + text
	}
	return text
}

// isDigits reports whether a text consists of digits.
func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// formatTime is the date and time for a number of days; false if there is none. Seconds are rounded: a fraction of 64
// bits does not hold them exactly.
func (f numberFormat) formatTime(number string, is1904 bool) (string, bool) {
	days, err := strconv.ParseFloat(number, 64)
	if err != nil || !(days >= 0 && days < 2_958_466) { // the year 10000
		return "", false
	}
	day, fraction := math.Modf(days)
	seconds := int(math.Round(fraction * 86_400))
	if f.isElapsed {
		return formatClock(int(day)*86_400 + seconds), true
	}
	if day == 0 && !is1904 { // no date has the number 0
		return formatClock(seconds % 86_400), f.hasTime
	}
	t := epoch(day, is1904).AddDate(0, 0, int(day)).Add(time.Duration(seconds) * time.Second)
	switch {
	case f.hasDate && f.hasTime:
		return t.Format("2006-01-02T15:04:05"), true
	case f.hasDate:
		return epoch(day, is1904).AddDate(0, 0, int(day)).Format(time.DateOnly), true
	}
	return formatClock(seconds % 86_400), true
}

// epoch is the day of number 0. Spreadsheets count a 29 February 1900 that never was, so days before it have another epoch.
func epoch(day float64, is1904 bool) time.Time {
	switch {
	case is1904:
		return time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case day < 60:
		return time.Date(1899, 12, 31, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
}

// formatClock writes hours and minutes, and seconds if there are any.
func formatClock(seconds int) string {
	text := fmt.Sprintf("%02d:%02d", seconds/3600, seconds/60%60)
	if s := seconds % 60; s != 0 {
		text += fmt.Sprintf(":%02d", s)
	}
	return text
}

// formatNumber is the shortest decimal that stands for a number of 64 bits. If 15 digits, which spreadsheets show, are much
// shorter, the rest is a rounding error: 0.1+0.2 is 0.3.
func formatNumber(number string) string {
	// Most numbers are codes and years, which are written as they are shown.
	if isDigits(number) && len(number) <= 15 && number[0] != '0' {
		return number
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return number
	}
	if abs := math.Abs(n); abs >= 1e21 || abs != 0 && abs < 1e-12 {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	exact := strconv.FormatFloat(n, 'f', -1, 64)
	shown, err := strconv.ParseFloat(strconv.FormatFloat(n, 'g', 15, 64), 64)
	if err != nil {
		return exact
	}
	if rounded := strconv.FormatFloat(shown, 'f', -1, 64); len(rounded)+3 <= len(exact) {
		return rounded
	}
	return exact
}
