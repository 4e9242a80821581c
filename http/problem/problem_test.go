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

	"lieudit/commands/access"
	"lieudit/commands/account"
	"lieudit/commands/locations"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/http/bodylimit"
	"lieudit/http/problem"
	locationsqueries "lieudit/queries/locations"
	"lieudit/schemas/body"
	"lieudit/schemas/body/openapi"
	"lieudit/schemas/origin"
	"lieudit/schemas/token"
)

// writeToRecorder is what a client gets for an error, and what is logged of it.
func writeToRecorder(err error) (w *httptest.ResponseRecorder, logged string) {
	var log strings.Builder
	w = httptest.NewRecorder()
	problem.Write(w, slog.New(token.DefaultPrefixes.RedactingHandler(slog.NewTextHandler(&log, nil))), err)
	return w, log.String()
}

// answerCases is section 7 of the specification, letter for letter.
var answerCases = []struct {
	err    error
	status int
	body   string // of the detail, or whole when it begins with {"status
}{
	{problem.BadRequest(), 400, `"Request too short or invalid"`},
	{problem.KeyRequired(), 401, `"API key required. Please provide a valid API key in the Authorization header."`},
	{problem.KeyInvalid(), 401, `"Invalid API key"`},
	{problem.PlanInsufficient("GROWTH"), 403, `"Your plan (GROWTH) does not have access to this service. Please upgrade your plan."`},
	{problem.PlanInsufficient("DISCOVERY"), 403, `"Your plan (DISCOVERY) does not have access to this service. Please upgrade your plan."`},
	{problem.NotFound(), 404, `"Not found"`},
	{problem.MethodNotAllowed("GET"), 405, `"Method not allowed"`},
	{problem.ReferentialCodeTaken(), 409, `"code_deja_utilise"`},
	{problem.Conflict("referentiel_archive"), 409, `"referentiel_archive"`},
	{problem.SiteCapacityExceeded(2199, 2000, 2200), 409, `{"code":"capacite_sites_depassee","sites_actifs":2199,"capacite":2000,"plafond":2200}`},
	{problem.ReferentialCapacityExceeded(5, 5), 409, `{"code":"capacite_referentiels_depassee","referentiels_actifs":5,"maximum":5}`},
	{problem.BodyTooLarge(), 413, `"Request body too large"`},
	{problem.AddressUnresolved("12 rue <X> & \"Y\""), 422, `"Unable to resolve 12 rue <X> & \"Y\" to a verified match"`},
	{problem.Unprocessable("idempotence"), 422, `"idempotence"`},
	{problem.AddressUnparsable(), 422, `{"status":"API_ERROR","message":"Unable to parse address"}`},
	{problem.QuotaExceeded("DISCOVERY", 20000), 429, `"Rate limit exceeded. Max allowed usage for plan DISCOVERY is 20000 requests."`},
	{problem.QuotaExceeded("GROWTH", 500000), 429, `"Your plan (GROWTH) has exceeded the rate limit for this service. Please upgrade your plan."`},
	{problem.Internal(), 500, `"Internal error"`},
	{problem.RoutingUnavailable(), 500, `"Routing engine unavailable"`},
	{fmt.Errorf("read: %w", bodylimit.ErrOverloaded), 500, `"Service overloaded"`},
	{fmt.Errorf("read: %w", bodylimit.ErrSlow), 400, `"Request too short or invalid"`},
	{fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1}), 413, `"Request body too large"`},
	{problem.AuthUnavailable(), 503, `"Authentication service unavailable"`},
	{
		problem.Violations(problem.Violation{
			Type: "value_error", Loc: []any{"body", "sites", 17, "lat"}, Msg: "Value error, x", Input: map[string]any{"lat": 1},
		}), 422, `[{"type":"value_error","loc":["body","sites",17,"lat"],"msg":"Value error, x","input":{"lat":1}}]`,
	},
	{fmt.Errorf("issue key: %w", problem.ReferentialCodeTaken()), 409, `"code_deja_utilise"`},
}

func TestAnswersAreTheSpecifications(t *testing.T) {
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
		{problem.PublishableKeyOutOfScope(), 403, `"code":"cle_publiable_hors_perimetre"`, "GET /locations/search"},
		{problem.OriginMissing(), 403, `"code":"origine_absente"`, "Origin"},
		{problem.OriginNotAllowed(), 403, `"code":"origine_non_autorisee"`, "origine"},
		{problem.SuspiciousReduction(10, 4), 409, `"code":"reduction_suspecte","actifs_avant":10,"actifs_apres":4`, "confirmer_reduction"},
		{problem.PublishableKeyCapacityExceeded(0, 0), 409, `"code":"capacite_cles_publiables_depassee","plafond":0,"actives":0`, "pas de clé publiable"},
		{problem.PublishableKeyCapacityExceeded(1, 1), 409, `"code":"capacite_cles_publiables_depassee","plafond":1,"actives":1`, "La clé publiable"},
		{problem.PublishableKeyCapacityExceeded(5, 7), 409, `"code":"capacite_cles_publiables_depassee","plafond":5,"actives":7`, "Les 5 clés"},
		{&origin.InvalidError{Entry: "http://A.fr", Reason: "parce que"}, 422, `"code":"origine_invalide"`, "« http://A.fr »"},
		{&origin.TooManyError{Count: 12}, 422, `"code":"trop_d_origines"`, "12"},
		{fmt.Errorf("x: %w", &origin.TooManyError{Count: 12}), 422, `"code":"trop_d_origines"`, "10"},
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
	w, _ := writeToRecorder(problem.Throttled())
	if w.Code != 429 || w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Errorf("got %d %q %v, want a bare 429", w.Code, w.Body, w.Header())
	}
}

func TestAWrongMethodIsToldTheRightOnes(t *testing.T) {
	t.Parallel()
	w, _ := writeToRecorder(problem.MethodNotAllowed("GET", "OPTIONS", "POST"))
	if got := w.Header().Get("Allow"); got != "GET, OPTIONS, POST" {
		t.Errorf("Allow is %q", got)
	}
}

func TestAnUnknownErrorTellsNothingAndIsLoggedOnce(t *testing.T) {
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

func TestAtMost100ViolationsAreTold(t *testing.T) {
	t.Parallel()
	w, _ := writeToRecorder(problem.Violations(make([]problem.Violation, 101)...))
	var got struct{ Detail []json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Detail) != 100 {
		t.Errorf("%d violations, %v; want 100", len(got.Detail), err)
	}
}

// TestDocumentedFailuresAreWhatIsSent holds every example of the OpenAPI documents to the constructors.
func TestDocumentedFailuresAreWhatIsSent(t *testing.T) {
	t.Parallel()
	_, badOrigin := origin.Parse("http://exemple.fr")
	sent := map[string]bool{}
	for _, err := range append(domainRefusals(),
		problem.BadRequest(), problem.KeyRequired(), problem.KeyInvalid(), problem.PlanInsufficient("GROWTH"), problem.Forbidden(),
		problem.PublishableKeyOutOfScope(), problem.OriginMissing(), problem.OriginNotAllowed(), problem.NotFound(), problem.BodyTooLarge(),
		problem.ReferentialCodeTaken(), problem.ReferentialArchived(), problem.SiteCapacityExceeded(2199, 2000, 2200), problem.ReferentialCapacityExceeded(25, 25),
		problem.SuspiciousReduction(100, 40), locations.ErrKeyReused,
		problem.PublishableKeyCapacityExceeded(5, 5), problem.QuotaExceeded("DISCOVERY", 20000), problem.QuotaExceeded("GROWTH", 1), problem.Internal(),
		problem.RoutingUnavailable(), problem.AuthUnavailable(), problem.AddressUnparsable(), problem.AddressUnresolved("3 rue de Nulle Part"), badOrigin, &origin.TooManyError{Count: 11},
		problem.Violations(problem.Violation{
			Type: "less_than_equal", Loc: []any{"query", "limit"}, Msg: "Input should be less than or equal to 100", Input: map[string]any{"limit": "500"},
		}),
	) {
		w, _ := writeToRecorder(err)
		sent[fmt.Sprintf("%d %s", w.Code, w.Body)] = true
	}
	for _, api := range []openapi.API{body.API(), body.CustomerArea()} {
		for _, op := range api.Operations {
			for _, f := range op.Failures {
				var example strings.Builder
				e := json.NewEncoder(&example)
				e.SetEscapeHTML(false)
				if err := e.Encode(f.Body); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprintf("%d %s", f.Status, example.String()); !sent[got] {
					t.Errorf("%s %s documents %s which is never sent", op.Method, op.Path, got)
				}
			}
		}
	}
}

// domainRefusals are the rules of accounts and of corrections.
func domainRefusals() []error {
	return []error{
		account.ErrAlreadyOpen, account.ErrClosed, account.ErrNotClosed, account.ErrUnknownAgency, account.ErrNestedAgency, account.ErrAlreadySubClient,
		account.ErrNotSubClient, account.ErrLeavingUnconfirmed, account.ErrLeaving, account.ErrAgencyPlan, account.ErrOriginsOnSecretKey, account.ErrKeyRevoked,
		usage.ErrNotClosed, usage.ErrDayOutsidePeriod, usage.ErrAccountOutsideContract, usage.ErrBelowZero, usage.ErrZeroAdjustment,
	}
}

func TestRefusalsOfTheDomainHaveTheirAnswer(t *testing.T) {
	t.Parallel()
	for _, err := range domainRefusals() {
		w, logged := writeToRecorder(fmt.Errorf("do: %w", err))
		if want := `,"message":"` + err.Error() + "\"}}\n"; w.Code != 409 || !strings.HasSuffix(w.Body.String(), want) || logged != "" {
			t.Errorf("got %d %s and logged %q, want 409 %s", w.Code, w.Body, logged, want)
		}
	}
	for want, err := range map[string]error{
		"404 {\"detail\":\"Not found\"}\n":                                    account.ErrUnknownAccount,
		"404 {\"detail\":\"Not found\"}\n ":                                   account.ErrUnknownKey,
		"404 {\"detail\":\"Not found\"}\n  ":                                  access.ErrUnknownToken,
		"404 {\"detail\":\"Not found\"}\n   ":                                 usage.ErrUnknownPeriod,
		"404 {\"detail\":\"Not found\"}\n    ":                                locations.ErrUnknownReferential,
		"404 {\"detail\":\"Not found\"}\n     ":                               locations.ErrUnknownSite,
		"404 {\"detail\":\"Not found\"}\n      ":                              locationsqueries.ErrNotFound,
		"409 {\"detail\":\"referentiel_archive\"}\n":                          locations.ErrArchived,
		"409 {\"detail\":\"code_deja_utilise\"}\n":                            locations.ErrCodeTaken,
		"422 {\"detail\":\"Idempotency-Key was used for another request\"}\n": locations.ErrKeyReused,
		`409 {"detail":{"code":"capacite_sites_depassee","sites_actifs":220,"capacite":200,"plafond":220}}` + "\n":                                              &locations.SiteCapError{Active: 220, Capacity: 200, Ceiling: 220},
		`409 {"detail":{"code":"capacite_referentiels_depassee","referentiels_actifs":5,"maximum":5}}` + "\n":                                                   &locations.ReferentialCapError{Active: 5, Maximum: 5},
		`409 {"detail":{"code":"reduction_suspecte","actifs_avant":10,"actifs_apres":4,`:                                                                        &locations.ReductionError{Before: 10, After: 4},
		"503 {\"detail\":\"Authentication service unavailable\"}\n":                                                                                             eventstore.ErrUnavailable,
		`422 {"detail":[{"type":"less_than_equal","loc":["body","quota"],"msg":"Input should be less than or equal to 20000","input":{"quota":30000}}]}` + "\n": &account.QuotaError{Quota: 30000, Max: 20000},
		`409 {"detail":{"code":"capacite_cles_publiables_depassee","plafond":1,"actives":1,`:                                                                    &account.KeyCapError{Cap: 1, Active: 1},
	} {
		w, _ := writeToRecorder(fmt.Errorf("do: %w", err))
		if got := fmt.Sprintf("%d %s", w.Code, w.Body); !strings.HasPrefix(got, strings.TrimRight(want, " ")) {
			t.Errorf("%v: got %s want %s", err, got, want)
		}
	}
}

func TestTheDetailOfARefusalIsWhatIsSent(t *testing.T) {
	t.Parallel()
	for _, p := range []problem.Problem{problem.SiteCapacityExceeded(1, 2, 3), problem.SuspiciousReduction(10, 4), problem.ReferentialArchived()} {
		w, _ := writeToRecorder(p)
		got, err := p.MarshalDetail()
		if want := `{"detail":` + string(got) + "}\n"; err != nil || w.Body.String() != want {
			t.Errorf("got %s, %v; sent is %s", got, err, w.Body)
		}
	}
}
