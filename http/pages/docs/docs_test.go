package docs

import (
	"encoding/json"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lieudit/http/pages/docs/reference"
	"lieudit/http/pages/page/pagetest"
	"lieudit/schemas/body"
	"lieudit/schemas/body/shape"
	"lieudit/schemas/grant"
	"lieudit/schemas/refusal"
)

// valuesOf are the values that the schema of a match allows for a member.
func valuesOf(t *testing.T, v any, member string) []string {
	t.Helper()
	s, err := shape.FromType(reflect.TypeOf(v))
	if err != nil {
		t.Fatal(err)
	}
	f, ok := s.Field(member)
	if !ok {
		t.Fatalf("%T has no %s", v, member)
	}
	return f.Enum
}

func TestEveryValueOfAVerificationIsExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		member   string
		of       any
		meanings []meaning
	}{
		{"verdict", body.Match{}, verdictMeanings}, {"motif", body.Match{}, reasonMeanings}, {"motif", body.Matches{}, reasonMeanings},
		{"precision", body.Match{}, precisionMeanings}, {"statut", body.Component{}, statusMeanings},
	} {
		var explained []string
		for _, m := range c.meanings {
			explained = append(explained, m.Value)
			if m.Text.FR == "" || m.Text.EN == "" {
				t.Errorf("%s %s lacks a language", c.member, m.Value)
			}
		}
		if want := valuesOf(t, c.of, c.member); !slices.Equal(explained, want) {
			t.Errorf("%s of %T: explained %v, allowed %v", c.member, c.of, explained, want)
		}
	}
}

func TestWorkedExamplesShowEachDecision(t *testing.T) {
	t.Parallel()
	got := map[decision]int{}
	for _, w := range workedExamples {
		one, err := workExample(reference.FindExample(w.scene, w.title))
		if err != nil || one.Typed == "" {
			t.Fatalf("%s: %v", w.title, err)
		}
		got[one.Decision]++
		if wants := one.Decision == accept; wants != (one.Match != nil && one.Match.IsResolved && one.Reason == "") {
			t.Errorf("%s is decided as %s: %+v", w.title, one.Decision, one.Match)
		}
	}
	if got[accept] == 0 || got[ask] == 0 || got[refuse] == 0 {
		t.Errorf("decisions are %v", got)
	}
}

func TestNamedExamplesExist(t *testing.T) {
	t.Parallel()
	a := pagetest.New(grant.RoleCustomer)
	for target, want := range map[string]string{"/api": "&#34;suggestions&#34;", "/api/espace-client": "/accounts/mende/usage"} {
		if text := a.Get(t, Section(), target, "fr", 200); !strings.Contains(text, want) {
			t.Errorf("%s lacks its example", target)
		}
	}
}

func TestDecideAsksAboutWhatIsNotCertain(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		match *body.Match
		want  decision
	}{
		{nil, refuse}, {&body.Match{IsResolved: true, NumberFound: &yes}, accept}, {&body.Match{IsResolved: true, NumberFound: &no}, ask},
		{&body.Match{IsResolved: true}, ask}, {&body.Match{NumberFound: &yes}, ask},
	} {
		var answer body.Matches
		if c.match != nil {
			answer.Matches = []body.Match{*c.match}
		}
		if got := decide(answer); got != c.want {
			t.Errorf("%+v is decided as %s, want %s", c.match, got, c.want)
		}
	}
}

func TestEveryErrorIsListedOnce(t *testing.T) {
	t.Parallel()
	api, area := listFailures()
	count := map[string]int{}
	for _, f := range slices.Concat(api, area) {
		count[f.Anchor]++
		if f.Cause.FR == "" || f.Cure.EN == "" {
			t.Errorf("%s has no cause or cure", f.Anchor)
		}
	}
	for _, row := range refusal.Table() {
		if count[string(row.Code)] != 1 {
			t.Errorf("%s is listed %d times", row.Code, count[string(row.Code)])
		}
	}
	for _, d := range []*reference.Document{reference.API(), reference.Area()} {
		for _, op := range d.All() {
			for _, f := range op.Failures {
				if count[f.Name] != 1 {
					t.Errorf("%s refuses for %s, which is listed %d times", op.Slug, f.Name, count[f.Name])
				}
			}
		}
	}
	if slices.ContainsFunc(area, func(f failure) bool {
		return strings.Contains(f.Anchor, "quota") || f.Anchor == string(refusal.Throttled)
	}) {
		t.Error("an error of the API is listed as one of the customer area alone")
	}
}

// TestEachPageIsWholeAndWithinItsBudget asks for every page in both languages.
func TestEachPageIsWholeAndWithinItsBudget(t *testing.T) {
	t.Parallel()
	a := pagetest.New(grant.RoleCustomer)
	for _, target := range []string{"/api", "/api/erreurs", "/api/verdicts", "/api/espace-client"} {
		a.ExpectSafe(t, Section(), target, "")
	}
	for _, d := range []*reference.Document{reference.API(), reference.Area()} {
		for _, op := range d.All() {
			a.ExpectSafe(t, Section(), "/api/"+op.Slug, "")
			for _, m := range op.Methods[1:] {
				if got := a.Redirect(t, Section(), "/api/"+m.Slug, nil); got != "/api/"+op.Slug {
					t.Errorf("%s leads to %s", m.Slug, got)
				}
			}
		}
	}
	for _, hostile := range pagetest.HostileTexts {
		a.Get(t, Section(), "/api/"+url.PathEscape(hostile), "fr", 404)
	}
}

func TestFilesAreTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name := range documents {
		golden, err := os.ReadFile("../../../schemas/body/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := pagetest.New(grant.RoleCustomer).Get(t, Section(), "/api/"+name, "fr", 200); got != string(golden) {
			t.Errorf("%s is not the golden file", name)
		}
	}
	if text := pagetest.New(grant.RoleCustomer).Get(t, Section(), "/api/postman.json", "fr", 200); !json.Valid([]byte(text)) || !strings.Contains(text, `"http://localhost:8081/services/v1"`) {
		t.Error("the Postman collection is no JSON, or does not name the API")
	}
	pagetest.New(grant.RoleCustomer).Get(t, Section(), "/api/rien.json", "fr", 404)
}
