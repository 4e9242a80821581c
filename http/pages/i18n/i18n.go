// Package i18n has the two languages of the web pages: French, and English. Texts stand with both languages side by side where they are
// used, in Go as a Text and in templates as {{t "Clés" "Keys"}}, so that no phrase can lack one and nothing is looked up by a name.
//
// A Printer writes texts, numbers, dates and spans of time as a language does. Days and hours are those of Europe/Paris, like the days of
// usage. golang.org/x/text is used to choose the language; it formats no dates, and its French groups digits with a no-break space
// where browsers and typography have the narrow one.
package i18n

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"

	"lieudit/schemas/plan"
)

// Lang is a language of the pages, as in the attribute lang.
type Lang string

// The languages. French is the one for whoever asks for neither.
const (
	French  Lang = "fr"
	English Lang = "en"
)

// Parse returns the language of a text, such as the value of a cookie. ok is false if the text names no language.
func Parse(text string) (lang Lang, ok bool) {
	lang = Lang(text)
	return lang, lang == French || lang == English
}

var matcher = language.NewMatcher([]language.Tag{language.French, language.English})

// Negotiate chooses the language for an Accept-Language header.
func Negotiate(header string) Lang {
	_, i := language.MatchStrings(matcher, header)
	if i == 1 {
		return English
	}
	return French
}

// Text is a phrase in both languages. It may have the verbs of fmt, the same in both.
type Text struct{ FR, EN string }

// In returns the phrase in a language.
func (t Text) In(l Lang) string {
	if l == English {
		return t.EN
	}
	return typographic.Replace(t.FR)
}

// typographic puts the no-break spaces of French where phrases have plain ones: narrow before ; ! ? and wide before : and inside « ».
var typographic = strings.NewReplacer(" ;", narrow+";", " !", narrow+"!", " ?", narrow+"?", " :", "\u00a0:", "« ", "«\u00a0", " »", "\u00a0»")

// IsZero reports whether there is no phrase.
func (t Text) IsZero() bool { return t == Text{} }

// Printer writes for one language. Now is the wall clock, for spans of time.
type Printer struct {
	Lang Lang
	Now  func() time.Time
}

// Text writes a phrase with its arguments.
func (p Printer) Text(t Text, args ...any) string { return p.T(t.FR, t.EN, args...) }

// T writes a phrase, given in French and in English, with its arguments.
func (p Printer) T(fr, en string, args ...any) string {
	text := Text{fr, en}.In(p.Lang)
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// H writes a phrase that holds markup. Its arguments are escaped.
func (p Printer) H(fr, en string, args ...any) template.HTML {
	escaped := make([]any, len(args))
	for i, a := range args {
		switch v := a.(type) {
		case template.HTML:
			escaped[i] = v
		default:
			escaped[i] = template.HTMLEscapeString(fmt.Sprint(v))
		}
	}
	return template.HTML(p.T(fr, en, escaped...))
}

// Count writes a number with its noun: French has the singular for 0 and 1, English for 1 alone. %s in a phrase is the number.
func (p Printer) Count(n int64, frOne, frMany, enOne, enMany string) string {
	text := enMany
	switch {
	case p.Lang == French && n < 2 && n > -2:
		text = typographic.Replace(frOne)
	case p.Lang == French:
		text = typographic.Replace(frMany)
	case n == 1:
		text = enOne
	}
	return strings.ReplaceAll(text, "%s", p.Number(n))
}

// narrow is the narrow no-break space, which groups digits and stands before some signs in French.
const narrow = "\u202f"

// Number writes a whole number with its digits in groups of three.
func (p Printer) Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "−", digits[1:]
	}
	separator := ","
	if p.Lang == French {
		separator = narrow
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + separator + digits[i:]
	}
	return sign + digits
}

// Percent writes a share with one digit after the point: 85,4 % in French.
func (p Printer) Percent(share float64) string {
	text := strconv.FormatFloat(share*100, 'f', 1, 64)
	if p.Lang == French {
		return strings.Replace(text, ".", ",", 1) + narrow + "%"
	}
	return text + "%"
}

// Bytes writes a size in MB or GB.
func (p Printer) Bytes(n int64) string {
	units := []string{"MB", "GB"}
	if p.Lang == French {
		units = []string{"Mo", "Go"}
	}
	size, unit := float64(n)/1e6, units[0]
	if size >= 1000 {
		size, unit = size/1000, units[1]
	}
	text := strconv.FormatFloat(size, 'f', 1, 64)
	if p.Lang == French {
		text = strings.Replace(text, ".", ",", 1)
	}
	return text + "\u00a0" + unit
}

var (
	frenchMonths = [...]string{"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"}
	frenchShort  = [...]string{"janv.", "févr.", "mars", "avr.", "mai", "juin", "juil.", "août", "sept.", "oct.", "nov.", "déc."}
)

// Date writes the day of an instant: 21 novembre 2026.
func (p Printer) Date(t time.Time) string {
	t = t.In(plan.Paris)
	if p.Lang == English {
		return t.Format("2 January 2006")
	}
	day := strconv.Itoa(t.Day())
	if t.Day() == 1 {
		day = "1er"
	}
	return fmt.Sprintf("%s %s %d", day, frenchMonths[t.Month()-1], t.Year())
}

// LastDay writes the last day of a span that ends before an instant: a period that ends with 27 December, 0 h, has 26 December in it.
func (p Printer) LastDay(end time.Time) string { return p.Date(end.Add(-time.Nanosecond)) }

// ShortDate writes the day of an instant without the year: 21 nov.
func (p Printer) ShortDate(t time.Time) string {
	t = t.In(plan.Paris)
	if p.Lang == English {
		return t.Format("2 Jan")
	}
	return fmt.Sprintf("%d %s", t.Day(), frenchShort[t.Month()-1])
}

// Month writes the month of an instant: nov. 2026.
func (p Printer) Month(t time.Time) string {
	t = t.In(plan.Paris)
	if p.Lang == English {
		return t.Format("Jan 2006")
	}
	return fmt.Sprintf("%s %d", frenchShort[t.Month()-1], t.Year())
}

// Second writes an instant to the second, as it stands in a record: 21/11/2026 12:25:07.
func (p Printer) Second(t time.Time) string {
	if p.Lang == English {
		return t.In(plan.Paris).Format("2 Jan 2006, 15:04:05")
	}
	return t.In(plan.Paris).Format("02/01/2006 15:04:05")
}

// DateTime writes an instant: 21 novembre 2026, 12 h 25.
func (p Printer) DateTime(t time.Time) string { return p.Date(t) + ", " + p.Clock(t) }

// Clock writes the time of day of an instant: 12 h 25.
func (p Printer) Clock(t time.Time) string {
	t = t.In(plan.Paris)
	if p.Lang == English {
		return t.Format("15:04")
	}
	return fmt.Sprintf("%d\u00a0h\u00a0%02d", t.Hour(), t.Minute())
}

// Since writes how long ago an instant was: il y a 2 min. From 30 days on it is the date.
func (p Printer) Since(t time.Time) string {
	ago := p.Now().Sub(t)
	switch {
	case ago < 10*time.Second:
		return p.T("à l’instant", "just now")
	case ago < time.Minute:
		return p.T("il y a %d\u00a0s", "%d s ago", int(ago.Seconds()))
	case ago < time.Hour:
		return p.T("il y a %d\u00a0min", "%d min ago", int(ago.Minutes()))
	case ago < 24*time.Hour:
		return p.T("il y a %d\u00a0h", "%d h ago", int(ago.Hours()))
	case ago < 48*time.Hour:
		return p.T("hier", "yesterday")
	case ago < 30*24*time.Hour:
		return p.T("il y a %d\u00a0jours", "%d days ago", int(ago.Hours()/24))
	}
	return p.Date(t)
}

// Until writes how long it is to an instant: dans 14 min.
func (p Printer) Until(t time.Time) string {
	left := t.Sub(p.Now())
	switch {
	case left < time.Minute:
		return p.T("dans moins d’une minute", "in less than a minute")
	case left < time.Hour:
		return p.T("dans %d\u00a0min", "in %d min", int(left.Minutes()))
	case left < 48*time.Hour:
		return p.T("dans %d\u00a0h", "in %d h", int(left.Hours()))
	}
	return p.T("dans %d\u00a0jours", "in %d days", int(left.Hours()/24))
}

// Time writes how long ago an instant was as an element with the instant itself, which its title shows whole.
func (p Printer) Time(t time.Time) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`,
		t.UTC().Format(time.RFC3339), html.EscapeString(p.DateTime(t)), html.EscapeString(p.Since(t))))
}
