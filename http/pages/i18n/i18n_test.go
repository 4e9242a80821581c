package i18n_test

import (
	"strings"
	"testing"
	"time"

	"lieudit/http/pages/i18n"
	"lieudit/schemas/plan"
)

func TestTheLanguageIsTheOneThatTheBrowserAsksFor(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]i18n.Lang{
		"": i18n.French, "fr": i18n.French, "fr-CA,fr;q=0.9,en;q=0.5": i18n.French, "en": i18n.English, "en-GB,en;q=0.8": i18n.English,
		"de-DE,en;q=0.7,fr;q=0.3": i18n.English, "de": i18n.French, "*": i18n.French, "en;q=0.1,fr;q=0.9": i18n.French, "\xff;q=x": i18n.French,
	} {
		if got := i18n.Negotiate(header); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func TestNumbersAreWrittenAsTheLanguageDoes(t *testing.T) {
	t.Parallel()
	fr, en := i18n.Printer{Lang: i18n.French}, i18n.Printer{Lang: i18n.English}
	for n, want := range map[int64][2]string{
		0: {"0", "0"}, 999: {"999", "999"}, 1000: {"1\u202f000", "1,000"}, 1234567: {"1\u202f234\u202f567", "1,234,567"},
		-1234: {"−1\u202f234", "−1,234"}, -999: {"−999", "−999"},
	} {
		if got := [2]string{fr.Number(n), en.Number(n)}; got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := fr.Percent(0.8543); got != "85,4\u202f%" {
		t.Errorf("French: %q", got)
	}
	if got := en.Percent(0.8543); got != "85.4%" {
		t.Errorf("English: %q", got)
	}
}

// French has the singular for 0 and 1, English for 1 alone.
func TestCountChoosesTheNumberOfTheNoun(t *testing.T) {
	t.Parallel()
	for _, lang := range []i18n.Lang{i18n.French, i18n.English} {
		p := i18n.Printer{Lang: lang}
		for n, want := range map[int64]map[i18n.Lang]string{
			0: {i18n.French: "0 clé", i18n.English: "0 keys"}, 1: {i18n.French: "1 clé", i18n.English: "1 key"},
			2: {i18n.French: "2 clés", i18n.English: "2 keys"}, 1500: {i18n.French: "1\u202f500 clés", i18n.English: "1,500 keys"},
		} {
			if got := p.Count(n, "%s clé", "%s clés", "%s key", "%s keys"); got != want[lang] {
				t.Errorf("%s %d: %q, want %q", lang, n, got, want[lang])
			}
		}
	}
}

func TestDaysAndHoursAreThoseOfParis(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 7, 31, 22, 5, 0, 0, time.UTC) // 1 August, 00:05 in Paris
	fr, en := i18n.Printer{Lang: i18n.French}, i18n.Printer{Lang: i18n.English}
	if got := fr.DateTime(at); got != "1er août 2026, 0\u00a0h\u00a005" {
		t.Errorf("French: %q", got)
	}
	if got := en.DateTime(at); got != "1 August 2026, 00:05" {
		t.Errorf("English: %q", got)
	}
	if got := fr.ShortDate(time.Date(2026, 2, 3, 12, 0, 0, 0, plan.Paris)); got != "3 févr." {
		t.Errorf("short: %q", got)
	}
}

func TestSpansAreToldInTheLargestUnit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	p := i18n.Printer{Lang: i18n.English, Now: func() time.Time { return now }}
	for ago, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", 40 * time.Second: "40 s ago", 90 * time.Second: "1 min ago", 23 * time.Hour: "23 h ago",
		30 * time.Hour: "yesterday", 72 * time.Hour: "3 days ago", 40 * 24 * time.Hour: "18 October 2026",
	} {
		got := p.Since(now.Add(-ago))
		if got = replaceSpaces(got); got != want {
			t.Errorf("%v ago: %q, want %q", ago, got, want)
		}
	}
	if got := replaceSpaces(p.Until(now.Add(14*time.Minute + 30*time.Second))); got != "in 14 min" {
		t.Errorf("until: %q", got)
	}
}

// Arguments of a phrase with markup are escaped, whoever typed them.
func TestArgumentsOfMarkupAreEscaped(t *testing.T) {
	t.Parallel()
	p := i18n.Printer{Lang: i18n.French}
	if got := p.H("<b>%s</b>", "<b>%s</b>", `<script>"'&`); string(got) != "<b>&lt;script&gt;&#34;&#39;&amp;</b>" {
		t.Errorf("%q", got)
	}
}

func replaceSpaces(text string) string {
	var out []rune
	for _, r := range text {
		if r == '\u00a0' || r == '\u202f' {
			r = ' '
		}
		out = append(out, r)
	}
	return string(out)
}

func TestFrenchSignsKeepTheirWords(t *testing.T) {
	t.Parallel()
	for phrase, want := range map[string]string{
		"Quand ? Maintenant !":              "Quand\u202f? Maintenant\u202f!",
		"un ; deux : trois":                 "un\u202f; deux\u00a0: trois",
		"la clé « %s »":                     "la clé «\u00a0a : b\u00a0»", // what is typed stays as it was typed
		"https://exemple.fr:8080/?a=1;b=%s": "https://exemple.fr:8080/?a=1;b=a : b",
	} {
		args := []any{"a : b"}
		if !strings.Contains(phrase, "%s") {
			args = nil
		}
		if got := (i18n.Printer{Lang: i18n.French}).T(phrase, "", args...); got != want {
			t.Errorf("%q is written %q, want %q", phrase, got, want)
		}
	}
	if got := (i18n.Printer{Lang: i18n.English}).T("", "a : b"); got != "a : b" {
		t.Errorf("English is written %q", got)
	}
}
