package account

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/commands"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
	"lieudit/schemas/token"
)

// now is a Saturday in the first period of every account below, which all begin on the 15th.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// When the periods of an account of given and of its agency begin: midnight in Paris on the 15th and on the 3rd.
var (
	period            = time.Date(2026, 11, 14, 23, 0, 0, 0, time.UTC)
	nextPeriod        = time.Date(2026, 12, 14, 23, 0, 0, 0, time.UTC)
	agencysPeriod     = time.Date(2026, 11, 2, 23, 0, 0, 0, time.UTC)
	agencysNextPeriod = time.Date(2026, 12, 2, 23, 0, 0, 0, time.UTC)
)

// parent is the agency of tests.
func parent() agencyState {
	return agencyState{exists: true, isActive: true, plan: plan.Growth, quota: 600_000, anchor: plan.Date{Year: 2026, Month: 9, Day: 3}}
}

// given folds a history that begins with an account opened on a plan.
func given(onPlan plan.Name, events ...event.Event) *State {
	p, _ := plan.Lookup(onPlan)
	var s State
	opened := event.AccountOpened{Account: "a", Name: "A", Plan: onPlan, Quota: p.DefaultQuota, Anchor: plan.Date{Year: 2026, Month: 10, Day: 15}}
	for _, e := range append([]event.Event{opened}, events...) {
		Evolve(&s, commands.Record{Event: e, At: now.Add(-time.Hour)})
	}
	return &s
}

func refused(action, code string) []event.Event {
	return []event.Event{event.AccountActionRefused{Action: action, Code: code}}
}

func secret(id string) event.SecretKeyIssued {
	return event.SecretKeyIssued{Key: id, Label: "l", Hint: "h", Hash: []byte(id)}
}

func publishable(id string) event.PublishableKeyIssued {
	return event.PublishableKeyIssued{Key: id, Label: "l", Hint: "h", Hash: []byte(id), Token: "t", Origins: []string{"https://a.fr"}}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	active := parent()
	joined := event.AgencyJoined{Agency: "g", Effective: now.Add(-2 * time.Hour)} // given records every event as an hour old
	joining := event.AgencyJoined{Agency: "g", Effective: nextPeriod}
	leaving := event.AgencyLeft{Agency: "g", Effective: agencysNextPeriod}
	left := event.AgencyLeft{Agency: "g", Effective: now.Add(-time.Second)}
	oversold := event.PlanChanged{From: plan.Growth, To: plan.Growth, Quota: 99_999_999_999, Effective: now.Add(-2 * time.Hour)}
	fallback := event.PlanChanged{From: plan.Growth, To: plan.Growth, Quota: 500_000, Effective: agencysNextPeriod}
	lowered := event.PlanChanged{From: plan.Growth, To: plan.Growth, Quota: 7, Effective: agencysNextPeriod}
	closed := event.AccountClosed{}
	revoked := event.KeyRevoked{Key: "k", Hint: "h", Hash: []byte("k")}
	issued := func(onPlan plan.Name, kind token.Kind, rawOrigins ...string) commands.Decision[State] {
		return func(s *State) commands.Result {
			k := Key{ID: "n", Label: "l", Hint: "h", Kind: kind, Hash: []byte("n"), Token: "t"}
			result, _ := issueKey(s, k, rawOrigins, agencyState{exists: true, plan: onPlan}, now)
			return result
		}
	}
	issuedUnder := func(agency agencyState, kind token.Kind) commands.Decision[State] {
		return func(s *State) commands.Result {
			result, _ := issueKey(s, Key{ID: "n", Label: "l", Hint: "h", Kind: kind, Hash: []byte("n"), Token: "t"}, []string{"https://a.fr"}, agency, now)
			return result
		}
	}
	closedAgency := parent()
	closedAgency.isActive, closedAgency.closed = false, now
	plans := func(name plan.Name, quota int64) commands.Decision[State] {
		return func(s *State) commands.Result {
			return changePlan(s, Terms{name, quota}, parent(), now)
		}
	}
	changed := func(from, to plan.Name, quota int64, at time.Time) []event.Event {
		return []event.Event{event.PlanChanged{From: from, To: to, Quota: quota, Effective: at}}
	}
	join := func(to string, agency agencyState) commands.Decision[State] {
		return func(s *State) commands.Result { return joinAgency(s, to, agency, now) }
	}
	quotas := func(name plan.Name, quota int64) commands.Decision[State] {
		return func(s *State) commands.Result { return changeSubClientQuota(s, Terms{name, quota}, parent(), now) }
	}
	leave := func(s *State) commands.Result { return leaveAgency(s, parent(), true, now) }
	askToLeave := func(s *State) commands.Result { return leaveAgency(s, parent(), false, now) }
	activate := func(s *State) commands.Result { return activateAgency(s, now) }
	origins := func(key string, rawOrigins ...string) commands.Decision[State] {
		return func(s *State) commands.Result {
			result, _ := changeOrigins(s, key, rawOrigins)
			return result
		}
	}
	revoking := func(key string) commands.Decision[State] {
		return func(s *State) commands.Result { return revokeKey(s, key) }
	}
	newKey := publishable("n")
	full := refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 1, Active: 1})
	none := refusal.KeysOverCapacity.With(refusal.Details{Ceiling: 0, Active: 0})

	for _, c := range []struct {
		rule   string
		given  *State
		decide commands.Decision[State]
		want   []event.Event
		err    error
	}{
		{"a secret key is issued without a cap", given(plan.Discovery, secret("k")), issued(plan.Discovery, token.Secret), []event.Event{secret("n")}, nil},
		{"a closed account gets no key", given(plan.Starter, closed), issued(plan.Starter, token.Secret), refused("issue-secret-key", "compte_ferme"), refusal.AccountClosed},
		{"a sub-client of a closed agency gets no key", given(plan.Starter, joined), issuedUnder(closedAgency, token.Secret), refused("issue-secret-key", "agence_fermee"), refusal.AgencyClosed},
		{"nor a publishable one", given(plan.Starter, joined), issuedUnder(closedAgency, token.Publishable), refused("issue-publishable-key", "agence_fermee"), refusal.AgencyClosed},
		{"a closed sub-client of a closed agency is closed", given(plan.Starter, joined, closed), issuedUnder(closedAgency, token.Secret), refused("issue-secret-key", "compte_ferme"), refusal.AccountClosed},
		{"a publishable key takes a slot", given(plan.Starter), issued(plan.Starter, token.Publishable, "https://a.fr"), []event.Event{newKey}, nil},
		{"the cap of publishable keys has no tolerance", given(plan.Starter, publishable("k")), issued(plan.Starter, token.Publishable, "https://a.fr"), refused("issue-publishable-key", string(full.Code)), full},
		{"a plan without publishable keys says so", given(plan.Discovery), issued(plan.Discovery, token.Publishable, "https://a.fr"), refused("issue-publishable-key", string(none.Code)), none},
		{"a revoked publishable key frees its slot", given(plan.Starter, publishable("k"), revoked), issued(plan.Starter, token.Publishable, "https://a.fr"), []event.Event{newKey}, nil},
		{"a faulty origin is refused before the cap", given(plan.Discovery), issued(plan.Discovery, token.Publishable, "http://a.fr"), nil, refusal.OriginInvalid},
		{"origins are kept in their canonical form, each once", given(plan.Starter), issued(plan.Starter, token.Publishable, "HTTPS://A.FR", "https://a.fr"), []event.Event{newKey}, nil},

		{"a revoked key stays revoked", given(plan.Starter, publishable("k"), revoked), revoking("k"), nil, nil},
		{"a key is revoked by id", given(plan.Starter, publishable("k")), revoking("k"), []event.Event{revoked}, nil},
		{"a key of a closed account can be revoked", given(plan.Starter, publishable("k"), closed), revoking("k"), []event.Event{revoked}, nil},
		{"an unknown key is not found", given(plan.Starter), revoking("k"), nil, ErrUnknownKey},

		{"origins change and the key stays", given(plan.Starter, publishable("k")), origins("k", "https://b.fr"), []event.Event{event.KeyOriginsChanged{Key: "k", Hash: []byte("k"), Before: []string{"https://a.fr"}, Origins: []string{"https://b.fr"}}}, nil},
		{"the same origins change nothing", given(plan.Starter, publishable("k")), origins("k", "https://a.fr"), nil, nil},
		{"a secret key has no origins", given(plan.Starter, secret("k")), origins("k", "https://a.fr"), refused("change-origins", "origines_sur_cle_secrete"), refusal.OriginsOnSecretKey},
		{"a revoked key keeps its origins", given(plan.Starter, publishable("k"), revoked), origins("k", "https://b.fr"), refused("change-origins", "cle_revoquee"), refusal.KeyRevoked},
		{"origins of an unknown key are not found", given(plan.Starter), origins("k", "https://b.fr"), nil, ErrUnknownKey},

		{"an upgrade acts now", given(plan.Starter), plans(plan.Business, 0), changed(plan.Starter, plan.Business, 2_000_000, period), nil},
		{"a downgrade acts at the next period", given(plan.Business), plans(plan.Starter, 0), changed(plan.Business, plan.Starter, 100_000, nextPeriod), nil},
		{"more volume on the same plan acts now", given(plan.Starter), plans(plan.Starter, 150_000), changed(plan.Starter, plan.Starter, 150_000, period), nil},
		{"less volume on the same plan acts at the next period", given(plan.Starter), plans(plan.Starter, 5), changed(plan.Starter, plan.Starter, 5, nextPeriod), nil},
		{"the same terms change nothing", given(plan.Starter), plans(plan.Starter, 0), nil, nil},
		{"a downgrade asked for twice is one", given(plan.Business, event.PlanChanged{To: plan.Starter, Quota: 100_000, Effective: nextPeriod}), plans(plan.Starter, 0), nil, nil},
		{"a downgrade is taken back by asking for the present terms", given(plan.Business, event.PlanChanged{To: plan.Starter, Quota: 100_000, Effective: nextPeriod}), plans(plan.Business, 0), changed(plan.Business, plan.Business, 2_000_000, period), nil},
		{"DISCOVERY has no more than 20000 requests", given(plan.Starter), plans(plan.Discovery, 20_001), refused("change-plan", "quota_trop_grand"), &QuotaError{20_001, 20_000}},
		{"a sub-client's plan is its agency's", given(plan.Starter, joined), plans(plan.Business, 0), refused("change-plan", "plan_de_l_agence"), refusal.PlanOfAgency},
		{"a sub-client's volume is its own", given(plan.Growth, joined), plans(plan.Growth, 600_000), changed(plan.Growth, plan.Growth, 600_000, agencysPeriod), nil},
		{"an agency gives a sub-client as much as its contract", given(plan.Growth, joined), quotas(plan.Growth, 600_000), changed(plan.Growth, plan.Growth, 600_000, agencysPeriod), nil},
		{"an agency gives a sub-client no more than its contract", given(plan.Growth, joined), quotas(plan.Growth, 600_001), refused("change-plan", "quota_trop_grand"), &QuotaError{600_001, 600_000}},
		{"an agency lowers a volume at the next period", given(plan.Growth, joined), quotas(plan.Growth, 3), changed(plan.Growth, plan.Growth, 3, agencysNextPeriod), nil},
		{"a sub-client's volume goes down at its agency's next period", given(plan.Growth, joined), plans(plan.Growth, 4), changed(plan.Growth, plan.Growth, 4, agencysNextPeriod), nil},
		{"a smaller volume waits, whatever the sub-client's own plan", given(plan.Starter, joined), plans(plan.Growth, 60), changed(plan.Starter, plan.Growth, 60, agencysNextPeriod), nil},
		{"a larger volume acts now, whatever the sub-client's own plan", given(plan.Business, joined, lowered), plans(plan.Growth, 3_000_000), changed(plan.Business, plan.Growth, 3_000_000, agencysPeriod), nil},
		{"the plan's volume is no more than the contract", given(plan.Business, joined), func(s *State) commands.Result {
			return changeSubClientQuota(s, Terms{plan.Business, 0}, agencyState{plan: plan.Business, quota: 5}, now)
		}, changed(plan.Business, plan.Business, 5, nextPeriod), nil}, // of an unknown agency
		{"an agency lowers what an older release let it sell", given(plan.Growth, joined, oversold), quotas(plan.Growth, 0), changed(plan.Growth, plan.Growth, 500_000, agencysNextPeriod), nil},
		{"an agency's hand leaves a sub-client's own plan", given(plan.Starter, joined), quotas(plan.Growth, 600_000), changed(plan.Starter, plan.Starter, 600_000, agencysPeriod), nil},
		{"an agency sells no other plan", given(plan.Growth, joined), quotas(plan.Business, 0), refused("change-plan", "plan_de_l_agence"), refusal.PlanOfAgency},
		{"an agency sets nothing for who is leaving", given(plan.Growth, joined, leaving, fallback), quotas(plan.Growth, 600_000), refused("change-plan", "sous_client_sur_le_depart"), refusal.SubClientLeaving},
		{"an agency sets nothing for who has left", given(plan.Growth, joined, left), quotas(plan.Growth, 600_000), refused("change-plan", "pas_sous_client"), refusal.NotSubClient},
		{"an agency sets nothing for who is closed", given(plan.Growth, joined, closed), quotas(plan.Growth, 600_000), refused("change-plan", "compte_ferme"), refusal.AccountClosed},
		{"a closed account keeps its plan", given(plan.Starter, closed), plans(plan.Business, 0), refused("change-plan", "compte_ferme"), refusal.AccountClosed},

		{"agency mode is activated", given(plan.Starter), activate, []event.Event{event.AgencyActivated{}}, nil},
		{"agency mode is activated once", given(plan.Starter, event.AgencyActivated{}), activate, nil, nil},
		{"a sub-client is no agency", given(plan.Starter, joining), activate, refused("activate-agency", "agence_imbriquee"), refusal.NestedAgency},
		{"an account joins at its next period", given(plan.Starter), join("g", active), []event.Event{joining}, nil},
		{"joining twice is once", given(plan.Starter, joining), join("g", active), nil, nil},
		{"a sub-client has one agency", given(plan.Starter, joined), join("h", active), refused("join-agency", "deja_sous_client"), refusal.AlreadySubClient},
		{"an agency has no agency", given(plan.Starter, event.AgencyActivated{}), join("g", active), refused("join-agency", "agence_imbriquee"), refusal.NestedAgency},
		{"an account that is no agency takes nobody", given(plan.Starter), join("g", agencyState{exists: true}), refused("join-agency", "agence_inconnue"), refusal.AgencyUnknown},
		{"a sub-client leaves at its agency's next period", given(plan.Starter, joined), leave, []event.Event{leaving}, nil},
		{"an agency only asks that one leaves", given(plan.Starter, joined), askToLeave, refused("leave-agency", "depart_a_confirmer"), refusal.LeavingUnconfirmed},
		{"who leaves goes back to its plan's volume", given(plan.Growth, joined, oversold), leave, []event.Event{leaving, fallback}, nil},
		{"who leaves loses what was to be", given(plan.Growth, joined, lowered), leave, []event.Event{leaving, fallback}, nil},
		{"leaving twice is once", given(plan.Growth, joined, oversold, leaving, fallback), leave, nil, nil},
		{"leaving again mends what an older release recorded", given(plan.Growth, joined, oversold, leaving), leave, []event.Event{fallback}, nil},
		{"leaving again keeps what an operator settled since", given(plan.Growth, joined, oversold, leaving, lowered), leave, nil, nil},
		{"a sub-client asks for no other agency's state", given(plan.Starter, joined), join("h", agencyState{exists: true, isSubClient: true}), refused("join-agency", "deja_sous_client"), refusal.AlreadySubClient},
		{"a membership that has not begun ends at once", given(plan.Starter, joining), leave, []event.Event{event.AgencyLeft{Agency: "g", Effective: now}}, nil},
		{"who has no agency leaves none", given(plan.Starter), leave, refused("leave-agency", "pas_sous_client"), refusal.NotSubClient},

		{"an account closes once", given(plan.Starter, closed), closeAccount, nil, nil},
		{"an account closes", given(plan.Starter), closeAccount, []event.Event{closed}, nil},
		{"a closed account is erased", given(plan.Starter, closed), eraseAccount, []event.Event{event.AccountErased{}}, nil},
		{"an account is erased once", given(plan.Starter, closed, event.AccountErased{}), eraseAccount, nil, nil},
		{"an open account is not erased", given(plan.Starter), eraseAccount, refused("erase", "compte_ouvert"), refusal.AccountOpen},
		{"an id is opened once", given(plan.Starter), OpenRequest{ID: "a", Plan: plan.Starter}.decide, nil, refusal.AccountExists},
		{"a closed id is not opened again", given(plan.Starter, closed), OpenRequest{ID: "a", Plan: plan.Starter}.decide, nil, refusal.AccountExists},
		{"an account opens with the plan's volume", new(State), OpenRequest{ID: "a", Name: "A", Plan: plan.Starter}.decide, []event.Event{event.AccountOpened{Account: "a", Name: "A", Plan: plan.Starter, Quota: 100_000}}, nil},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			result := c.decide(c.given)
			got, err := result.Events(), result.Err()
			if result.Failed() {
				t.Errorf("%v is called a failure", err)
			}
			if c.want != nil || err == nil {
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			}
			if !sameError(err, c.err) {
				t.Errorf("got error %v, want %v", err, c.err)
			}
		})
	}
}

// sameError compares refusals with their details if want has any, and otherwise by their code.
func sameError(got, want error) bool {
	return errors.Is(got, want) || got != nil && want != nil && got.Error() == want.Error()
}

func TestOpenUnderAnAgency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		g    agencyState
		plan plan.Name
		want error
	}{
		{"takes the agency's plan", agencyState{exists: true, isActive: true, plan: plan.Growth}, "", nil},
		{"may name the agency's plan", agencyState{exists: true, isActive: true, plan: plan.Growth}, plan.Growth, nil},
		{"may not name another", agencyState{exists: true, isActive: true, plan: plan.Growth}, plan.Starter, refusal.PlanOfAgency},
		{"needs an active agency", agencyState{exists: true, plan: plan.Growth}, "", refusal.AgencyUnknown},
		{"needs an agency that exists", agencyState{}, "", refusal.AgencyUnknown},
		{"has depth one", agencyState{exists: true, isActive: true, isSubClient: true}, "", refusal.NestedAgency},
	} {
		t.Run(strings.ReplaceAll(c.rule, " ", "_"), func(t *testing.T) {
			t.Parallel()
			got, err := OpenRequest{ID: "s", Plan: c.plan}.withAgencyPlan(c.g)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err == nil && got.Plan != c.g.plan {
				t.Errorf("got plan %s, want %s", got.Plan, c.g.plan)
			}
		})
	}
}

// The log's clock is behind the one that decided. Until it caught up, a quota would have two values, and the lower one could
// become the cap of the whole period.
func TestAnUpgradeHoldsAtOnceByEveryClock(t *testing.T) {
	t.Parallel()
	s := given(plan.Starter)
	for _, e := range changePlan(s, Terms{plan.Business, 0}, parent(), now.Add(10*time.Minute)).Events() {
		Evolve(s, commands.Record{Event: e, At: now})
	}
	if got := s.Terms.At(now); got.Plan != plan.Business {
		t.Errorf("the terms are %+v", got)
	}
	if _, from, isScheduled := s.Terms.Next(now); isScheduled {
		t.Errorf("something begins at %v", from)
	}
}

func TestOpenedByAnAgencyWithinItsContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule                  string
		asked, contract, want int64
		most                  int64 // Max of the *QuotaError; 0: it is opened
	}{
		{rule: "as much as the contract", asked: 600_000, contract: 600_000, want: 600_000},
		{rule: "no more than the contract", asked: 600_001, contract: 600_000, most: 600_000},
		{rule: "the plan's own volume", contract: 600_000, want: 500_000},
		{rule: "the plan's own volume within the contract", contract: 5, want: 5},
		{rule: "an operator's word is not bound", asked: 99_999_999_999, want: 99_999_999_999},
	} {
		result := OpenRequest{ID: "s", Plan: plan.Growth, Quota: c.asked, Agency: "g", agencyQuota: c.contract}.decide(new(State))
		got, err := result.Events(), result.Err()
		if above, ok := errors.AsType[*QuotaError](err); ok != (c.most > 0) || ok && above.Max != c.most {
			t.Errorf("%s: %v, want at most %d", c.rule, err, c.most)
		}
		if err == nil && got[0].(event.AccountOpened).Quota != c.want {
			t.Errorf("%s: opened with %d, want %d", c.rule, got[0].(event.AccountOpened).Quota, c.want)
		}
	}
}

func TestEvolveKnowsEveryAccountEvent(t *testing.T) {
	t.Parallel()
	for _, typ := range event.All() {
		if typ.Category() != Aggregate.Category || typ.IsRecordOnly() ||
			typ.Name == (event.AccountOpened{}).EventType() {
			continue
		}
		s, before := given(plan.Starter, secret("k")), given(plan.Starter, secret("k"))
		e, err := event.Decode(typ.Name, []byte(`{"key":"k","hash":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","to":"BUSINESS","replaces":"o","agency":"g","effective":"2026-11-01T00:00:00Z","origins":["https://b.fr"]}`))
		if err != nil {
			t.Fatal(err)
		}
		if typ.Name == (event.AgencyLeft{}).EventType() {
			Evolve(s, commands.Record{Event: event.AgencyJoined{Agency: "g"}, At: now})
			Evolve(before, commands.Record{Event: event.AgencyJoined{Agency: "g"}, At: now})
		}
		Evolve(s, commands.Record{Event: e, At: now})
		if cmp.Equal(s, before, cmp.Exporter(func(reflect.Type) bool { return true })) {
			t.Errorf("%s changes nothing", typ.Name)
		}
	}
}
