package event_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/schemas/event"
	"lieudit/schemas/plan"
)

func TestWireNamesAreWellFormedAndUnique(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[a-z]+\.[a-z]+(-[a-z]+)*\.v[1-9][0-9]*$`)
	seen := map[string]bool{}
	for _, e := range event.All() {
		if !form.MatchString(e.Name) || seen[e.Name] {
			t.Errorf("%q is not new and of the form category.noun-past.vN", e.Name)
		}
		seen[e.Name] = true
		if want := e.Name[:strings.IndexByte(e.Name, '.')]; e.Category() != want {
			t.Errorf("category of %s is %q, want %q", e.Name, e.Category(), want)
		}
		if found, ok := event.Lookup(e.Name); !ok || found.GoType != e.GoType {
			t.Errorf("Lookup(%s) finds %v", e.Name, found.GoType)
		}
		if e.GoType.Kind() != reflect.Struct || newZeroEvent(e).EventType() != e.Name {
			t.Errorf("%s is declared by %v, whose wire name is %s", e.Name, e.GoType, newZeroEvent(e).EventType())
		}
	}
}

func newZeroEvent(e event.Type) event.Event { return reflect.Zero(e.GoType).Interface().(event.Event) }

var placeholder = regexp.MustCompile(`\{([^}]*)\}`)

func TestEveryPlaceholderOfASentenceIsAField(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		if e.Sentence == "" || e.Sentence != strings.TrimSpace(e.Sentence) || strings.HasSuffix(e.Sentence, ".") {
			t.Errorf("%s: sentence %q does not follow on an author's name", e.Name, e.Sentence)
		}
		fields := map[string]bool{}
		for _, f := range reflect.VisibleFields(e.GoType) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[name] = f.Type != reflect.TypeFor[event.Personal]()
		}
		for _, m := range placeholder.FindAllStringSubmatch(e.Sentence, -1) {
			if !fields[m[1]] {
				t.Errorf("%s: the sentence holds {%s}, which is no field, or a personal one", e.Name, m[1])
			}
		}
	}
}

// The French sentence of each event has the fields of the English one. The id of a sync is not in the data of its entry.
func TestEachSentenceIsInBothLanguagesWithTheSameFields(t *testing.T) {
	t.Parallel()
	fieldsOf := func(sentence string) []string {
		found := placeholder.FindAllString(sentence, -1)
		found = slices.DeleteFunc(found, func(f string) bool { return f == "{sync}" })
		slices.Sort(found)
		return found
	}
	for _, e := range event.All() {
		if diff := cmp.Diff(fieldsOf(e.Sentence), fieldsOf(e.French)); diff != "" {
			t.Errorf("%s (-English +French): %s", e.Name, diff)
		}
		if e.French == "" || e.French == e.Sentence || !strings.HasPrefix(e.French, "a ") || strings.HasSuffix(e.French, ".") {
			t.Errorf("%s: sentence %q does not follow on an author's name", e.Name, e.French)
		}
		data, err := json.Marshal(newFilledEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		if got := event.FrenchSentence(e.Name, data); strings.ContainsAny(got, "{}") || strings.Contains(got, "–") {
			t.Errorf("%s: %q leaves a value out", e.Name, got)
		}
	}
}

func TestFrenchSentencesWriteValuesAsInFrench(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, data, want string }{
		{"account.plan-changed.v1", `{"from":"GROWTH","to":"BUSINESS","quota":2000000,"effective":"2026-11-21T00:00:00Z"}`,
			"a changé l’offre de GROWTH à BUSINESS, avec 2\u202f000\u202f000 requêtes par mois, à partir du 21/11/2026 à 01\u00a0h\u00a000"},
		{"account.agency-left.v1", `{"agency":"a","effective":"2026-12-20T23:00:00Z"}`, "a détaché le compte de l’agence a, à partir du 21/12/2026"},
		{"account.key-origins-changed.v1", `{"key":"k1","before":["https://a.fr"],"origins":["https://a.fr","https://*.b.fr"]}`,
			"a changé les origines de la clé k1\u00a0: https://a.fr est devenu https://a.fr, https://*.b.fr"},
		{"account.action-refused.v1", `{"action":"change-plan","code":"compte_ferme"}`, "a essayé\u00a0: changer l’offre, ce qui a été refusé (compte_ferme)"},
		{"account.action-refused.v1", `{"action":"of-a-later-program","code":"x"}`, "a essayé\u00a0: of-a-later-program, ce qui a été refusé (x)"},
		{"token.issued.v1", `{"token":"t","role":"billing","hint":"h"}`, "a créé le jeton t (h) de rôle facturation"},
		{"usage.adjusted.v1", `{"endpoint":"GET /me","key":"k","day":"2026-11-21","requests":-12345}`, "a corrigé GET /me avec la clé k le 21/11/2026 de −12\u202f345"},
		{"account.secret-key-issued.v1", `{"origins":[]}`, "a créé la clé secrète – (–)"},
		{"account.closed.v1", "not JSON", "a fermé le compte"},
		{"account.of-a-later-program.v1", "{}", "account.of-a-later-program.v1"},
	} {
		if got := event.FrenchSentence(c.name, []byte(c.data)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestWhatHappenedToASiteIsTold(t *testing.T) {
	t.Parallel()
	for op, want := range map[string][2]string{
		event.SiteCreated:     {"created site p of m (version 1)", "a créé le site p de m (version 1)"},
		event.SiteUpdated:     {"updated site p of m (version 1)", "a modifié le site p de m (version 1)"},
		event.SiteReactivated: {"reactivated site p of m (version 1)", "a réactivé le site p de m (version 1)"},
		event.SiteDeactivated: {"deactivated site p of m (version 1)", "a désactivé le site p de m (version 1)"},
	} {
		row := event.SiteRow{ExternalID: "p", Operation: op, Version: 1}
		if got := [2]string{row.Sentence("m"), row.FrenchSentence("m")}; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		want := event.Latest(newFilledEvent(e))
		data, err := json.Marshal(newFilledEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		got, err := event.Decode(e.Name, data)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", e.Name, err, diff)
		}
		if hasHash(e) {
			continue
		}
		if empty, err := event.Decode(e.Name, []byte(`{}`)); err != nil || !reflect.DeepEqual(empty, event.Latest(newZeroEvent(e))) {
			t.Errorf("%s without fields: %+v, %v", e.Name, empty, err)
		}
	}
}

func TestFieldsOfALaterBinaryAreIgnored(t *testing.T) {
	t.Parallel()
	for _, e := range event.All() {
		want := event.Latest(newFilledEvent(e))
		data, err := json.Marshal(newFilledEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		later := []byte(`{"of_a_later_binary": {"x": [1]}`)
		if len(data) > len(`{}`) {
			later = append(later, ',')
		}
		got, err := event.Decode(e.Name, append(later, data[1:]...))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", e.Name, err, diff)
		}
	}
}

func TestDecodeOfUnknownTypeOrBadJSONIsAnError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "account.opened", "account.opened.v9", "Account.Opened.v1"} {
		if _, err := event.Decode(name, []byte(`{}`)); !errors.Is(err, event.ErrUnknownType) || !strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("Decode(%q): %v, want ErrUnknownType with the name", name, err)
		}
	}
	for _, data := range []string{"", "{", "[]", `"x"`, `{"account": 3}`, `{"quota": 1e99}`} {
		if e, err := event.Decode("account.opened.v1", []byte(data)); err == nil || errors.Is(err, event.ErrUnknownType) {
			t.Errorf("Decode of %s: %+v, %v; want an error", data, e, err)
		}
	}
}

func TestSentencesHoldTheEventsOwnValues(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]event.Event{
		"opened the account on plan GROWTH": event.AccountOpened{Name: "Acme", Plan: plan.Growth, Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}},
		"changed the plan from GROWTH to BUSINESS with 2000000 requests a month, effective 2026-11-21T01:00:00+01:00": event.PlanChanged{
			From: plan.Growth, To: plan.Business, Quota: 2_000_000, Effective: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC),
		},
		"changed the origins of key k1 from https://a.fr to https://a.fr, https://*.b.fr": event.KeyOriginsChanged{
			Key: "k1", Before: []string{"https://a.fr"}, Origins: []string{"https://a.fr", "https://*.b.fr"},
		},
		"issued secret key – (–)": event.SecretKeyIssued{},
		"closed the account":      event.AccountClosed{},
	} {
		if got := event.Sentence(e); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for _, e := range event.All() {
		if got := event.Sentence(newFilledEvent(e)); strings.ContainsAny(got, "{}") || strings.Contains(got, "–") {
			t.Errorf("%s: %q leaves a value out", e.Name, got)
		}
	}
}

func TestEventWithAHashThatIsNoSHA256IsRefused(t *testing.T) {
	t.Parallel()
	const whole = `"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="`
	hashed := 0
	for _, e := range event.All() {
		if !hasHash(e) {
			continue
		}
		hashed++
		for _, hash := range []string{`""`, `null`, `"AAAA"`, `"` + strings.Repeat("A", 44) + `"`} {
			if got, err := event.Decode(e.Name, []byte(`{"hash":`+hash+`,"tokenHash":`+whole+`}`)); err == nil {
				t.Errorf("%s with the hash %s is read as %v", e.Name, hash, got)
			}
		}
		if _, err := event.Decode(e.Name, []byte(`{"hash":`+whole+`,"tokenHash":`+whole+`}`)); err != nil {
			t.Errorf("%s with a whole hash: %v", e.Name, err)
		}
	}
	if hashed != 13 {
		t.Errorf("%d events hold a hash, want 13", hashed)
	}
}

func hasHash(e event.Type) bool {
	_, ok := e.GoType.FieldByName("Hash")
	return ok
}
