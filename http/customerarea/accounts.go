package customerarea

import (
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"lieudit/commands/account"
	"lieudit/eventstore"
	"lieudit/http/problem"
	"lieudit/schemas/access"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

func (h *handler) openAccount(r *http.Request, c call, in body.OpenAccount) (response, error) {
	if c.principal.Role == access.RoleAgency {
		if in.ID != "" {
			return response{}, refuseChosenID(in)
		}
		if in.Agency != "" && in.Agency != c.principal.Account {
			return response{}, account.ErrUnknownAgency
		}
		in.Agency = c.principal.Account
	}
	if in.ID == "" {
		in.ID = strings.ToLower(rand.Text())[:12]
	}
	if plan.DateOf(h.Now()).Start().Before(in.Anchor.Start()) {
		return response{}, refuseFutureStart(in)
	}
	c.vars = map[string]string{"id": in.ID}
	at, err := h.AccountCommands.OpenAccount(r.Context(), c.metadata(""), account.OpenRequest{
		ID: in.ID, Name: in.Name, Plan: in.Plan, Quota: in.Quota, Anchor: in.Anchor, Agency: in.Agency,
	})
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	shown, err := h.loadAccount(r, in.ID)
	return response{status: http.StatusCreated, body: shown}, err
}

// refuseChosenID: ids of an agency's sub-clients are generated, so that none tells which ids others have.
func refuseChosenID(in body.OpenAccount) error {
	return problem.Violations(problem.Violation{
		Type: "extra_forbidden", Loc: []any{"body", "id"}, Msg: "Extra inputs are not permitted",
		Input: map[string]any{"id": in.ID},
	})
}

// refuseFutureStart: a first period cannot begin after today.
func refuseFutureStart(in body.OpenAccount) error {
	return problem.Violations(problem.Violation{
		Type: "date_past", Loc: []any{"body", "debut_periode"}, Msg: "Date should not be in the future",
		Input: map[string]any{"debut_periode": in.Anchor},
	})
}

func (h *handler) showAccount(r *http.Request, c call, _ body.Empty) (response, error) {
	shown, err := h.loadAccount(r, c.account())
	return response{status: http.StatusOK, body: shown}, err
}

func (h *handler) changePlan(r *http.Request, c call, in body.ChangePlan) (response, error) {
	at, err := h.AccountCommands.ChangePlan(r.Context(), c.account(), c.metadata(""), account.Terms{Plan: in.Plan, Quota: in.Quota})
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	return h.showAccount(r, c, body.Empty{})
}

func (h *handler) closeAccount(r *http.Request, c call, in body.CloseAccount) (response, error) {
	if err := checkConfirmation(c, in.ID); err != nil {
		return response{}, err
	}
	at, err := h.AccountCommands.CloseAccount(r.Context(), c.account(), c.metadata(in.Reason))
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	return h.showAccount(r, c, body.Empty{})
}

// checkConfirmation checks that what cannot be taken back names its account twice. An agency must, an operator may.
func checkConfirmation(c call, repeatedID string) error {
	switch {
	case repeatedID == c.account(), repeatedID == "" && c.principal.Role != access.RoleAgency:
		return nil
	case repeatedID == "":
		return problem.BadRequest()
	}
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"body", "id"}, Msg: "Value error, not the account of the path",
		Input: map[string]any{"id": repeatedID},
	})
}

func (h *handler) eraseAccount(r *http.Request, c call, in body.EraseAccount) (response, error) {
	at, err := h.AccountCommands.EraseAccount(r.Context(), c.account(), c.metadata(in.Reason))
	if err := h.awaitAccounts(r.Context(), at, err); err != nil {
		return response{}, err
	}
	if err := h.ReadModels.Prune(r.Context()); err != nil { // retired copies know the name still
		return response{}, err
	}
	return h.showAccount(r, c, body.Empty{})
}

func (h *handler) changeAgency(r *http.Request, c call, in body.ChangeAgency) (response, error) {
	ctx, id, metadata := r.Context(), c.account(), c.metadata("")
	var at eventstore.Position
	var err error
	switch {
	case !in.Agency.IsGiven:
		at, err = h.AccountCommands.ActivateAgency(ctx, id, metadata)
	case in.Agency.Value == nil:
		at, err = h.AccountCommands.LeaveAgency(ctx, id, metadata)
	default:
		at, err = h.AccountCommands.JoinAgency(ctx, id, metadata, *in.Agency.Value)
	}
	if err := h.awaitAccounts(ctx, at, err); err != nil {
		return response{}, err
	}
	return h.showAccount(r, c, body.Empty{})
}

// loadAccount is an account as it stands.
func (h *handler) loadAccount(r *http.Request, id string) (body.Account, error) {
	s, err := h.AccountCommands.CurrentState(r.Context(), id)
	if err != nil {
		return body.Account{}, err
	}
	now := h.Now()
	terms := s.Terms.At(now)
	shown := body.Account{
		ID: s.ID, Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota, Anchor: s.Anchor,
		Agency: s.Agency.At(now), IsAgency: s.IsAgency, Created: s.OpenedAt, Closed: s.ClosedAt,
		NextTerms: toNextTerms(&s, now),
	}
	if shown.Agency != "" {
		if err := h.applyAgencyTerms(r, &shown, now); err != nil {
			return body.Account{}, err
		}
		if shown.NextTerms != nil && s.Agency.At(shown.NextTerms.Effective) == shown.Agency {
			shown.NextTerms.Plan = shown.Plan
		}
	}
	period := plan.PeriodAt(shown.Anchor, now)
	shown.Period = body.Interval{Start: period.Start(), End: period.End()}
	return shown, nil
}

// applyAgencyTerms gives a sub-client what it has from its agency.
func (h *handler) applyAgencyTerms(r *http.Request, shown *body.Account, now time.Time) error {
	agency, err := h.AccountCommands.CurrentState(r.Context(), shown.Agency)
	if err != nil {
		return err
	}
	shown.Plan, shown.Anchor = agency.Terms.At(now).Plan, agency.Anchor
	return nil
}

func toNextTerms(s *account.State, now time.Time) *body.NextTerms {
	next, effective, ok := s.Terms.Next(now)
	if !ok {
		return nil
	}
	return &body.NextTerms{Plan: next.Plan, Quota: next.Quota, Effective: effective}
}
