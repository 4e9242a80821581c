package area

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/http/problem"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
)

func (a *area) openAccount(r *http.Request, c call, in body.OpenAccount) (reply, error) {
	if c.pass.Role == grant.Agency {
		if in.ID != "" {
			return reply{}, chosenID(in)
		}
		if in.Agency != "" && in.Agency != c.pass.Account {
			return reply{}, account.ErrNoAgency
		}
		in.Agency = c.pass.Account
	}
	if in.ID == "" {
		in.ID = strings.ToLower(rand.Text())[:12]
	}
	if plan.DateOf(a.Now()).Start().Before(in.Start.Start()) {
		return reply{}, startsLater(in)
	}
	c.vars = map[string]string{"id": in.ID}
	at, err := a.Accounts.Open(r.Context(), c.intent(""), account.Open{
		ID: in.ID, Name: in.Name, Plan: in.Plan, Quota: in.Quota, Anchor: in.Start, Agency: in.Agency,
	})
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	shown, err := a.shown(r, in.ID)
	return reply{status: http.StatusCreated, body: shown}, err
}

// chosenID: ids of an agency's sub-clients are generated, so that none tells which ids others have.
func chosenID(in body.OpenAccount) error {
	return problem.Violations(problem.Violation{
		Type: "extra_forbidden", Loc: []any{"body", "id"}, Msg: "Extra inputs are not permitted",
		Input: map[string]any{"id": in.ID},
	})
}

// startsLater: a first period cannot begin after today.
func startsLater(in body.OpenAccount) error {
	return problem.Violations(problem.Violation{
		Type: "date_past", Loc: []any{"body", "debut_periode"}, Msg: "Date should not be in the future",
		Input: map[string]any{"debut_periode": in.Start},
	})
}

func (a *area) showAccount(r *http.Request, c call, _ body.Empty) (reply, error) {
	shown, err := a.shown(r, c.account())
	return reply{status: http.StatusOK, body: shown}, err
}

func (a *area) changePlan(r *http.Request, c call, in body.ChangePlan) (reply, error) {
	at, err := a.Accounts.ChangePlan(r.Context(), c.account(), c.intent(""), account.Terms{Plan: in.Plan, Quota: in.Quota})
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	return a.showAccount(r, c, body.Empty{})
}

func (a *area) closeAccount(r *http.Request, c call, in body.CloseAccount) (reply, error) {
	if err := confirmed(c, in.ID); err != nil {
		return reply{}, err
	}
	at, err := a.Accounts.Close(r.Context(), c.account(), c.intent(in.Reason))
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	return a.showAccount(r, c, body.Empty{})
}

// confirmed checks that what cannot be taken back names its account twice. An agency must, an operator may.
func confirmed(c call, again string) error {
	switch {
	case again == c.account(), again == "" && c.pass.Role != grant.Agency:
		return nil
	case again == "":
		return problem.BadRequest()
	}
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"body", "id"}, Msg: "Value error, not the account of the path",
		Input: map[string]any{"id": again},
	})
}

func (a *area) eraseAccount(r *http.Request, c call, in body.EraseAccount) (reply, error) {
	at, err := a.Accounts.Erase(r.Context(), c.account(), c.intent(in.Reason))
	if err := a.shows(r.Context(), at, err); err != nil {
		return reply{}, err
	}
	if err := a.ReadModels.Prune(r.Context()); err != nil { // retired copies know the name still
		return reply{}, err
	}
	return a.showAccount(r, c, body.Empty{})
}

func (a *area) changeAgency(r *http.Request, c call, in body.ChangeAgency) (reply, error) {
	ctx, id, intent := r.Context(), c.account(), c.intent("")
	var at eventstore.Position
	var err error
	switch {
	case !in.Agency.Given:
		at, err = a.Accounts.ActivateAgency(ctx, id, intent)
	case in.Agency.Value == nil:
		at, err = a.Accounts.LeaveAgency(ctx, id, intent)
	default:
		at, err = a.Accounts.JoinAgency(ctx, id, intent, *in.Agency.Value)
	}
	if err := a.shows(ctx, at, err); err != nil {
		return reply{}, err
	}
	return a.showAccount(r, c, body.Empty{})
}

// shown is an account as it stands.
func (a *area) shown(r *http.Request, id string) (body.Account, error) {
	s, err := a.Accounts.Current(r.Context(), id)
	if err != nil {
		return body.Account{}, err
	}
	now := a.Now()
	terms := s.Terms.At(now)
	shown := body.Account{
		ID: s.ID, Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota, Start: s.Anchor,
		Agency: s.Agency.At(now), IsAgency: s.AgencyMode, Created: s.OpenedAt, Closed: s.ClosedAt,
		Next: nextTerms(&s, now),
	}
	if shown.Agency != "" {
		if err := a.inherit(r, &shown, now); err != nil {
			return body.Account{}, err
		}
		if shown.Next != nil && s.Agency.At(shown.Next.Effective) == shown.Agency {
			shown.Next.Plan = shown.Plan
		}
	}
	period := plan.PeriodAt(shown.Start, now)
	shown.Period = body.Interval{Start: period.Start(), End: period.End()}
	return shown, nil
}

// inherit gives a sub-client what it has from its agency.
func (a *area) inherit(r *http.Request, shown *body.Account, now time.Time) error {
	agency, err := a.Accounts.Current(r.Context(), shown.Agency)
	if err != nil {
		return err
	}
	shown.Plan, shown.Start = agency.Terms.At(now).Plan, agency.Anchor
	return nil
}

func nextTerms(s *account.State, now time.Time) *body.NextTerms {
	next, from, ok := s.Terms.Next(now)
	if !ok {
		return nil
	}
	return &body.NextTerms{Plan: next.Plan, Quota: next.Quota, Effective: from}
}
