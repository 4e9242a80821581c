package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/commands/locations"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/budget"
	"lieudit/http/connlimit"
	"lieudit/http/kit"
	"lieudit/http/problem"
	locationsqueries "lieudit/queries/locations"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// writeToRecorder is what a client gets for an error, and what is logged of it.
func writeToRecorder(err error) (w *httptest.ResponseRecorder, logged string) {
	var log strings.Builder
	w = httptest.NewRecorder()
	kit.WriteError(w, slog.New(token.DefaultPrefixes.RedactingHandler(slog.NewTextHandler(&log, nil))), err)
	return w, log.String()
}

// answerCases is section 7 of the specification, exactly.
var answerCases = []struct {
	err    error
	status int
	body   string // of the detail, or whole when it begins with {"status
}{
	{refusal.RequestMalformed, 400, `"Request too short or invalid"`},
	{refusal.KeyRequired, 401, `"API key required. Please provide a valid API key in the Authorization header."`},
	{refusal.KeyInvalid, 401, `"Invalid API key"`},
	{refusal.PlanInsufficient.With(refusal.Details{Plan: "GROWTH"}), 403, `"Your plan (GROWTH) does not have access to this service. Please upgrade your plan."`},
	{refusal.PlanInsufficient.With(refusal.Details{Plan: "DISCOVERY"}), 403, `"Your plan (DISCOVERY) does not have access to this service. Please upgrade your plan."`},
	{refusal.NotFound, 404, `"Not found"`},
	{problem.MethodNotAllowed("GET"), 405, `"Method not allowed"`},
	{refusal.ReferentialCodeTaken, 409, `"code_deja_utilise"`},
	{refusal.ReferentialArchived, 409, `"referentiel_archive"`},
	{refusal.SitesOverCapacity.With(refusal.Details{Active: 2199, Capacity: 2000, Ceiling: 2200}), 409, `{"code":"capacite_sites_depassee","sites_actifs":2199,"capacite":2000,"plafond":2200}`},
	{refusal.ReferentialsOverCapacity.With(refusal.Details{Active: 5, Ceiling: 5}), 409, `{"code":"capacite_referentiels_depassee","referentiels_actifs":5,"maximum":5}`},
	{refusal.BodyTooLarge, 413, `"Request body too large"`},
	{refusal.AddressUnresolved.With(refusal.Details{Typed: "12 rue <X> & \"Y\""}), 422, `"Unable to resolve 12 rue <X> & \"Y\" to a verified match"`},
	{refusal.IdempotencyMismatch, 422, `"Idempotency-Key was used for another request"`},
	{refusal.AddressUnparsable, 422, `{"status":"API_ERROR","message":"Unable to parse address"}`},
	{refusal.DiscoveryQuotaSpent.With(refusal.Details{Limit: 20000}), 429, `"Rate limit exceeded. Max allowed usage for plan DISCOVERY is 20000 requests."`},
	{refusal.QuotaSpent.With(refusal.Details{Plan: "GROWTH"}), 429, `"Your plan (GROWTH) has exceeded the rate limit for this service. Please upgrade your plan."`},
	{refusal.Internal, 500, `"Internal error"`},
	{refusal.AddressUnavailable, 500, `"Address engine unavailable"`},
	{refusal.RoutingUnavailable, 500, `"Routing engine unavailable"`},
	{refusal.ReadModelBehind, 500, `"Read model behind"`},
	{fmt.Errorf("read: %w", budget.ErrOverloaded), 500, `"Service overloaded"`},
	{fmt.Errorf("read: %w", connlimit.ErrSlow), 400, `"Request too short or invalid"`},
	{fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1}), 413, `"Request body too large"`},
	{refusal.AuthUnavailable, 503, `"Authentication service unavailable"`},
	{
		problem.Violations(problem.Violation{
			Type: "value_error", Loc: []any{"body", "sites", 17, "lat"}, Msg: "Value error, x", Input: map[string]any{"lat": 1},
		}), 422, `[{"type":"value_error","loc":["body","sites",17,"lat"],"msg":"Value error, x","input":{"lat":1}}]`,
	},
	{fmt.Errorf("issue key: %w", refusal.ReferentialCodeTaken), 409, `"code_deja_utilise"`},
}

func TestAnswersAreThoseOfTheSpecification(t *testing.T) {
	t.Parallel()
	for _, c := range answerCases {
		want := fmt.Sprintf(`{"detail":%s}`, c.body) + "\n"
		if strings.HasPrefix(c.body, `{"status"`) {
			want = c.body + "\n"
		}
		w, logged := writeToRecorder(c.err)
		if w.Code != c.status || w.Body.String() != want {
			t.Errorf("got  %d %swant %d %s", w.Code, w.Body, c.status, want)
		}
		if logged != "" {
			t.Errorf("%d %s is logged: %s", c.status, c.body, logged)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%d is sent as %s", c.status, got)
		}
		if got := w.Header().Get("Content-Length"); got != fmt.Sprint(len(want)) {
			t.Errorf("%d is said to be %s bytes long, want %d", c.status, got, len(want))
		}
		for _, never := range []string{"Retry-After", "X-Request-Id"} {
			if w.Header().Get(never) != "" {
				t.Errorf("%d has a header %s", c.status, never)
			}
		}
	}
}

func TestObjectsHoldTheirCodeAndAMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		fields string // in their order, but for the message
		says   string
	}{
		{refusal.KeyOutOfScope, 403, `"code":"cle_publiable_hors_perimetre"`, "GET /locations/search"},
		{refusal.OriginMissing, 403, `"code":"origine_absente"`, "Origin"},
		{refusal.OriginNotAllowed, 403, `"code":"origine_non_autorisee"`, "origine"},
		{refusal.SuspiciousReduction.With(refusal.Details{Before: 10, After: 4}), 409, `"code":"reduction_suspecte","actifs_avant":10,"actifs_apres":4`, "confirmer_reduction"},
		{refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 0, Active: 0}), 409, `"code":"capacite_cles_publiables_depassee","plafond":0,"actives":0`, "pas de clé publiable"},
		{refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 1, Active: 1}), 409, `"code":"capacite_cles_publiables_depassee","plafond":1,"actives":1`, "La clé publiable"},
		{refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 5, Active: 7}), 409, `"code":"capacite_cles_publiables_depassee","plafond":5,"actives":7`, "Les 5 clés"},
		{refusal.OriginInvalid.With(refusal.Details{Typed: "http://A.fr", Reason: "parce que"}), 422, `"code":"origine_invalide"`, "« http://A.fr »"},
		{refusal.TooManyOrigins.With(refusal.Details{Limit: 10, Count: 12}), 422, `"code":"trop_d_origines"`, "12"},
		{fmt.Errorf("x: %w", refusal.TooManyOrigins.With(refusal.Details{Limit: 10, Count: 12})), 422, `"code":"trop_d_origines"`, "10"},
	} {
		w, _ := writeToRecorder(c.err)
		got := w.Body.String()
		rest, ok := strings.CutPrefix(got, `{"detail":{`+c.fields+`,"message":"`)
		if w.Code != c.status || !ok || strings.Count(rest, `":`) != 0 || !strings.HasSuffix(rest, "\"}}\n") || !strings.Contains(rest, c.says) {
			t.Errorf("got %d %s want %d with %s and a message with %q", w.Code, got, c.status, c.fields, c.says)
		}
	}
}

func TestTheThrottleHasNoBody(t *testing.T) {
	t.Parallel()
	w, _ := writeToRecorder(refusal.Throttled)
	if w.Code != 429 || w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("got %d %q %v, want a bare 429", w.Code, w.Body, w.Header())
	}
}

func TestAWrongMethodIsAnsweredWithTheAllowedOnes(t *testing.T) {
	t.Parallel()
	w, _ := writeToRecorder(problem.MethodNotAllowed("GET", "OPTIONS", "POST"))
	if got := w.Header().Get("Allow"); got != "GET, OPTIONS, POST" {
		t.Errorf("Allow is %q", got)
	}
}

func TestAnUnknownErrorIsHiddenFromTheClientAndLoggedOnce(t *testing.T) {
	t.Parallel()
	secret := token.DefaultPrefixes.New(token.Secret)
	w, logged := writeToRecorder(fmt.Errorf("open account: %w", errors.New("password of db is x, key "+secret)))
	if want := "{\"detail\":\"Internal error\"}\n"; w.Code != 500 || w.Body.String() != want {
		t.Errorf("got %d %s want 500 %s", w.Code, w.Body, want)
	}
	if strings.Count(logged, "\n") != 1 || !strings.Contains(logged, "open account") || strings.Contains(logged, secret[6:]) {
		t.Errorf("logged: %s want one line with the cause, the token redacted", logged)
	}
}

func TestAClientThatWentAwayIsNoIncident(t *testing.T) {
	t.Parallel()
	if w, logged := writeToRecorder(fmt.Errorf("search: %w", context.Canceled)); w.Code != 500 || logged != "" {
		t.Errorf("got %d and logged %q, want 500 and nothing", w.Code, logged)
	}
}

func TestAtMost100ViolationsAreReported(t *testing.T) {
	t.Parallel()
	w, _ := writeToRecorder(problem.Violations(make([]problem.Violation, 101)...))
	var got struct{ Detail []json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Detail) != 100 {
		t.Errorf("%d violations, %v; want 100", len(got.Detail), err)
	}
}

// TestEveryRowIsSentAsItIsDocumented sends the example of each row of the table, and holds those of the OpenAPI documents to
// what is sent.
func TestEveryRowIsSentAsItIsDocumented(t *testing.T) {
	t.Parallel()
	sent := map[string]bool{`422 {"detail":[{"type":"less_than_equal","loc":["query","limit"],"msg":"Input should be less than or equal to 100","input":{"limit":"500"}}]}` + "\n": true}
	for _, row := range refusal.Table() {
		w, logged := writeToRecorder(fmt.Errorf("do: %w", row.Code.With(row.Example)))
		if logged != "" || w.Code != row.Status {
			t.Errorf("%s: %d, logged %q, want %d", row.Code, w.Code, logged, row.Status)
		}
		sent[fmt.Sprintf("%d %s", w.Code, w.Body)] = true
	}
	for _, api := range []openapi.API{body.API(), body.CustomerArea()} {
		for _, op := range api.Operations {
			for _, f := range op.Failures {
				if f.Status == http.StatusRequestHeaderFieldsTooLarge {
					continue // net/http sends it
				}
				text, err := kit.MarshalJSON(f.Body)
				if got := fmt.Sprintf("%d %s\n", f.Status, text); err != nil || !sent[got] {
					t.Errorf("%s %s documents %s which is never sent (%v)", op.Method, op.Path, got, err)
				}
			}
		}
	}
}

func TestErrorsOfOtherPackagesHaveTheirAnswer(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"404 {\"detail\":\"Not found\"}\n":                                                    account.ErrUnknownAccount,
		"404 {\"detail\":\"Not found\"}\n ":                                                   account.ErrUnknownKey,
		"404 {\"detail\":\"Not found\"}\n  ":                                                  areatoken.ErrUnknownToken,
		"404 {\"detail\":\"Not found\"}\n   ":                                                 usage.ErrUnknownPeriod,
		"404 {\"detail\":\"Not found\"}\n    ":                                                locations.ErrUnknownReferential,
		"404 {\"detail\":\"Not found\"}\n     ":                                               locations.ErrUnknownSite,
		"404 {\"detail\":\"Not found\"}\n      ":                                              locationsqueries.ErrNotFound,
		"404 {\"detail\":\"Not found\"}\n       ":                                             repair.ErrNoStreams,
		"503 {\"detail\":\"Authentication service unavailable\"}\n":                           eventstore.ErrUnavailable,
		"409 {\"detail\":{\"code\":\"compte_ferme\",\"message\":\"Ce compte est fermé.\"}}\n": refusal.AccountClosed,
	} {
		w, logged := writeToRecorder(fmt.Errorf("do: %w", err))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != strings.TrimRight(want, " ") || logged != "" {
			t.Errorf("%v: got %s want %s; logged %q", err, got, want, logged)
		}
	}
}

func TestTheDetailOfARefusalIsWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, err := range []error{refusal.SitesOverCapacity.With(refusal.Details{Active: 1, Capacity: 2, Ceiling: 3}), refusal.SuspiciousReduction.With(refusal.Details{Before: 10, After: 4}), refusal.ReferentialArchived} {
		w, _ := writeToRecorder(err)
		p, _ := problem.FromError(err)
		got, err := p.MarshalDetail()
		if want := `{"detail":` + string(got) + "}\n"; err != nil || w.Body.String() != want {
			t.Errorf("got %s, %v; sent is %s", got, err, w.Body)
		}
	}
}
