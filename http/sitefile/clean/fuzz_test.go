package clean_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"lieudit/http/sitefile/clean"
	"lieudit/schemas/locations"
)

// FuzzText: a fixed text is valid UTF-8 without outer spaces, and is not fixed again.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		" a  b", "CafÃƒÂ©", "&amp;lt;b&amp;gt;x", "<p>a<br>b</p><!-- x -->", "Ã\u200b©", "a\x80\xff\u0092", "<style>", "_x000D_",
		"&#x3c;b>",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, keepLines bool) {
		got, done := clean.Text(s, keepLines)
		if again, doneAgain := clean.Text(got, keepLines); again != got || len(doneAgain) > 0 {
			t.Fatalf("%q: %q, and then %q %q", s, got, again, doneAgain)
		}
		if !utf8.ValidString(got) || strings.TrimSpace(got) != got || (got == s) != (len(done) == 0) {
			t.Fatalf("%q: %q %q", s, got, done)
		}
	})
}

// FuzzPhones: numbers are those that the service takes, no two are the same, and reading them again gives them.
func FuzzPhones(f *testing.F) {
	for _, s := range []string{
		"06… / 07…", "+33 (0)4 66 65 12 34", "0033466651234 ou 0612345678", "466651234", "(+596) 56 12 34", "Tél 3949",
		"04 66 65 12 34 (12)",
	} {
		f.Add(s, "FR")
	}
	f.Add("02 123 45 67+32", "BE")
	f.Fuzz(func(t *testing.T, s, region string) {
		numbers, _ := clean.Phones(s, region)
		for i, n := range numbers {
			if !locations.IsPhone(n) || slices.Contains(numbers[:i], n) {
				t.Fatalf("%q in %s: %q", s, region, numbers)
			}
		}
		if again, rest := clean.Phones(strings.Join(numbers, " ; "), region); !slices.Equal(again, numbers) || rest != "" {
			t.Fatalf("%q in %s: %q, and then %q and %q", s, region, numbers, again, rest)
		}
	})
}

// FuzzReaders: what a reader gives it takes as it is, and so does the service.
func FuzzReaders(f *testing.F) {
	for _, s := range []string{
		"75 001", "2a004", "www.exemple.fr", "mailto:a@exemple.fr", "http:\\\\a.fr", "https://a.fr/?x=1,http", "732 829 320 00074",
		"Réunion",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, read := range readers {
			got, ok := read(s)
			if !ok {
				continue
			}
			if again, ok := read(got); !ok || again != got {
				t.Fatalf("%s %q: %q, and then %q %v", name, s, got, again, ok)
			}
			if name == "website" && !locations.IsWebsite(got) || name == "email" && !locations.IsEmail(got) {
				t.Fatalf("%s %q: %q", name, s, got)
			}
		}
		if n, ok := clean.Decimal(s); ok && (math.IsNaN(n) || math.IsInf(n, 0)) {
			t.Fatalf("%q: %v", s, n)
		}
	})
}

// checkHours checks that hours are what the service takes, and hold a week or only a text.
func checkHours(t *testing.T, hours json.RawMessage, ok bool) {
	t.Helper()
	if hours == nil {
		return
	}
	if h, err := locations.ParseHours(hours); err != nil || !ok && (h.Text == "" || h.Weekly != nil) {
		t.Fatalf("%s: %v", hours, err)
	}
}

// FuzzHours: whatever the text, the result is horaires of the API, and reading it again gives it.
func FuzzHours(f *testing.F) {
	for _, s := range []string{
		"Mo-Fr 09:00-12:30,14:00-19:00; Sa 09:00-12:00; PH off", "Du lundi au vendredi de 9h à 12h30, samedi fermé", "24h/24", "10 h 30 - 12", "Mar 9.30-1pm",
		`{"lundi":["09:00","12:00"]}`, `[{"dayOfWeek":"Monday","opens":"9:00","closes":"17h"}]`, `{'mardi': None}`, "Fr-Mo sauf dimanche 18:00-26:00", "[1]", "{}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return // the reader of files decodes before
		}
		hours, ok := clean.Hours(s, nil)
		checkHours(t, hours, ok)
		if again, _ := clean.Hours("", hours); hours != nil && string(again) != string(hours) {
			t.Fatalf("%q: %s, and then %s", s, hours, again)
		}
		days, ok := clean.WeekdayHours([7]string{s, "9h-12h", "", s, "fermé"})
		checkHours(t, days, ok)
	})
}
