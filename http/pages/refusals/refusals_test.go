package refusals_test

import (
	"net/http"
	"strings"
	"testing"

	"lieudit/http/pages/i18n"
	"lieudit/http/pages/refusals"
	"lieudit/schemas/refusal"
)

func TestEveryCodeHasAnAdviceInBothLanguages(t *testing.T) {
	t.Parallel()
	for _, row := range refusal.Table() {
		a, ok := refusals.For(row.Code)
		if !ok {
			t.Errorf("%s has no advice", row.Code)
		}
		for name, text := range map[string]i18n.Text{"cause": a.Cause, "cure": a.Cure, "what": a.What(), "do": a.Do()} {
			if text.FR == "" || text.EN == "" {
				t.Errorf("%s: its %s lacks a language", row.Code, name)
			}
			if strings.ContainsAny(text.FR, `'"`) || strings.ContainsAny(text.EN, `'"`) {
				t.Errorf("%s: its %s has a straight quote", row.Code, name)
			}
		}
		for _, title := range []i18n.Text{a.Cause, a.What()} {
			if strings.HasSuffix(title.FR, ".") || strings.HasSuffix(title.EN, ".") {
				t.Errorf("%s: %q ends as a sentence, and is a title", row.Code, title.EN)
			}
		}
		if !strings.HasSuffix(a.Cure.FR, ".") || !strings.HasSuffix(a.Cure.EN, ".") {
			t.Errorf("%s: %q is no sentence", row.Code, a.Cure.EN)
		}
	}
	if _, ok := refusals.For("rien"); ok {
		t.Error("any code has an advice")
	}
}

func TestOnlyFailuresOfTheServiceAreTriedAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{400: 0, 401: 0, 409: 0, 422: 0, 429: 0, 500: 4, 502: 4, 503: 3, 504: 4} {
		if got := refusals.RetryOf(status); len(got.Pauses) != want || got.Text.IsZero() {
			t.Errorf("%d %s: %d pauses, want %d", status, http.StatusText(status), len(got.Pauses), want)
		}
	}
}
