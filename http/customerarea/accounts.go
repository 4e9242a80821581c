package customerarea

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/eventstore"
	"lieudit/http/kit"
	"lieudit/http/problem"
	accountqueries "lieudit/queries/account"
	"lieudit/queries/audit"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Accounts is what the customer area needs for accounts, keys and tokens. Every part is required.
type Accounts struct {
	Commands *account.Accounts
	Tokens   *areatoken.Tokens
	Queries  *accountqueries.Reader // lists, from the read models
	Audit    *audit.Reader
	// Wait returns when the read models of this instance show the event of an account at a position of the log, or when that
	// takes too long. WaitTokens does so for an event of a token.
	Wait, WaitTokens func(context.Context, eventstore.Position)
}

// openAccount opens an account. One that an agency opens is its sub-client, whose id is generated; an operator may choose the
// id and the agency. An agency that names another agency gets the answer for an agency that does not exist. A generated id has
// 12 characters of 32 possible ones, so 60 random bits.
func (h *handler) openAccount(ctx context.Context, c call, in body.OpenAccount) (kit.Response, error) {
	if c.Principal.Role == grant.RoleAgency {
		if in.ID != "" {
			return kit.Response{}, refuseChosenID()
		}
		if in.Agency != "" && in.Agency != c.Principal.Account {
			return kit.Response{}, refusal.AgencyUnknown
		}
		in.Agency = c.Principal.Account
	}
	if in.ID == "" {
		in.ID = strings.ToLower(rand.Text())[:12]
	}
	if plan.DateOf(h.Now()).Start().Before(in.Anchor.Start()) {
		return kit.Response{}, refuseFutureStart()
	}
	c.Vars = map[string]string{"id": in.ID}
	at, err := h.accounts.Commands.OpenAccount(ctx, metadata(c, ""), account.OpenRequest{
		ID: in.ID, Name: in.Name, Plan: in.Plan, Quota: in.Quota, Anchor: in.Anchor, Agency: in.Agency,
	})
	if err := kit.Await(ctx, h.accounts.Wait, at, toQuotaRule(err)); err != nil {
		return kit.Response{}, err
	}
	shown, err := h.loadAccount(ctx, in.ID)
	return kit.Response{Status: http.StatusCreated, Body: shown}, err
}

// refuseChosenID refuses an id in a request of an agency: ids of sub-clients are generated, so that no refusal shows which
// ids others have.
func refuseChosenID() error {
	return problem.BrokenRule("body", "id", "extra_forbidden", "Extra inputs are not permitted")
}

// refuseFutureStart refuses a first period that begins after today.
func refuseFutureStart() error {
	return problem.BrokenRule("body", "debut_periode", "date_past", "Date should not be in the future")
}

// toQuotaRule turns an account.QuotaError into a validation error of the request: the quota is above what the plan or the
// agency allows. It returns any other error unchanged.
func toQuotaRule(err error) error {
	if e, ok := errors.AsType[*account.QuotaError](err); ok {
		return problem.BrokenRule("body", "quota", "less_than_equal", fmt.Sprintf("Input should be less than or equal to %d", e.Max))
	}
	return err
}

// showAccount shows an account from its stream, so that it is never behind a command. Lists come from the read models.
func (h *handler) showAccount(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	shown, err := h.loadAccount(ctx, c.Vars["id"])
	return kit.Response{Body: shown}, err
}

// changePlan sets plan and quota. An upgrade takes effect now, a downgrade with the next period. The answer shows the terms of
// now, and those that begin with the next period.
func (h *handler) changePlan(ctx context.Context, c call, in body.ChangePlan) (kit.Response, error) {
	at, err := h.accounts.Commands.ChangePlan(ctx, c.Vars["id"], metadata(c, ""), account.Terms{Plan: in.Plan, Quota: in.Quota})
	if err := kit.Await(ctx, h.accounts.Wait, at, toQuotaRule(err)); err != nil {
		return kit.Response{}, err
	}
	return h.showAccount(ctx, c, body.Empty{})
}

// closeAccount closes an account permanently: its keys, and those of an agency's sub-clients, are no longer valid.
func (h *handler) closeAccount(ctx context.Context, c call, in body.CloseAccount) (kit.Response, error) {
	if err := checkConfirmation(c, in.ID); err != nil {
		return kit.Response{}, err
	}
	at, isReasonOmitted, err := h.accounts.Commands.CloseAccount(ctx, c.Vars["id"], metadata(c, in.Reason))
	if err := kit.Await(ctx, h.accounts.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	shown, err := h.loadUnnamedAccount(ctx, c.Vars["id"]) // an account whose name is unreadable must be closed to be erased
	if isReasonOmitted {
		shown.Omitted = append(shown.Omitted, omittedReason)
	}
	return kit.Response{Body: shown}, err
}

// checkConfirmation checks that a request which cannot be undone names in its body the account of the path.
func checkConfirmation(c call, repeatedID string) error {
	if repeatedID == c.Vars["id"] {
		return nil
	}
	return problem.BrokenRule("body", "id", "value_error", "Value error, not the account of the path")
}

// eraseAccount makes the personal data of a closed account unreadable on the log, then drops the generations of read models
// that still hold it. An error of the latter does not undo the former; the same request, sent again, drops them.
func (h *handler) eraseAccount(ctx context.Context, c call, in body.EraseAccount) (kit.Response, error) {
	if err := checkConfirmation(c, in.ID); err != nil {
		return kit.Response{}, err
	}
	at, err := h.accounts.Commands.EraseAccount(ctx, c.Vars["id"], metadata(c, in.Reason))
	if err := kit.Await(ctx, h.accounts.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	// Retired generations, which no request reads any more, still hold the name.
	if err := h.maintenance.ReadModels.Prune(ctx); err != nil {
		return kit.Response{}, err
	}
	return h.showAccount(ctx, c, body.Empty{})
}

// changeAgency makes an account an agency, or the sub-client of one, or neither: see body.ChangeAgency.
func (h *handler) changeAgency(ctx context.Context, c call, in body.ChangeAgency) (kit.Response, error) {
	ctx, id, metadata := ctx, c.Vars["id"], metadata(c, "")
	var at eventstore.Position
	var err error
	switch {
	case !in.Agency.IsGiven:
		at, err = h.accounts.Commands.ActivateAgency(ctx, id, metadata)
	case in.Agency.Value == nil:
		at, err = h.accounts.Commands.LeaveAgency(ctx, id, metadata)
	default:
		at, err = h.accounts.Commands.JoinAgency(ctx, id, metadata, *in.Agency.Value)
	}
	if err := kit.Await(ctx, h.accounts.Wait, at, err); err != nil {
		return kit.Response{}, err
	}
	return h.showAccount(ctx, c, body.Empty{})
}

// loadAccount is an account as its stream has it now. A sub-client is shown with its agency's plan and periods, and so are the
// terms that are scheduled for it, unless it has left the agency when they begin. With eventstore.ErrUnreadable it is complete
// but for its name.
func (h *handler) loadAccount(ctx context.Context, id string) (body.Account, error) {
	s, unreadable := h.accounts.Commands.CurrentState(ctx, id)
	if unreadable != nil && !errors.Is(unreadable, eventstore.ErrUnreadable) {
		return body.Account{}, unreadable
	}
	now := h.Now()
	terms := s.Terms.At(now)
	shown := body.Account{
		ID: s.ID, Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota, Anchor: s.Anchor,
		Agency: s.AgencyAt(now), IsAgency: s.IsAgency, Created: s.OpenedAt, Closed: s.ClosedAt,
		NextTerms: toNextTerms(&s, now), NextAgency: toNextAgency(&s, now),
	}
	if shown.Agency != "" {
		if err := h.applyAgencyTerms(ctx, &shown, now); err != nil {
			return body.Account{}, err
		}
		if shown.NextTerms != nil && s.AgencyAt(shown.NextTerms.Effective) == shown.Agency {
			shown.NextTerms.Plan = shown.Plan
		}
	}
	period := plan.PeriodAt(shown.Anchor, now)
	shown.Period = body.Interval{Start: period.Start(), End: period.End()}
	return shown, unreadable
}

// loadUnnamedAccount is loadAccount for callers that do not need the name, which is left out if it is unreadable.
func (h *handler) loadUnnamedAccount(ctx context.Context, id string) (body.Account, error) {
	shown, err := h.loadAccount(ctx, id)
	if errors.Is(err, eventstore.ErrUnreadable) {
		err = nil
	}
	return shown, err
}

// applyAgencyTerms shows a sub-client with the plan and the periods of its agency. The quota is its own.
func (h *handler) applyAgencyTerms(ctx context.Context, shown *body.Account, now time.Time) error {
	agency, err := h.accounts.Commands.CurrentState(ctx, shown.Agency)
	if err != nil && !errors.Is(err, eventstore.ErrUnreadable) { // its name is not shown here
		return err
	}
	shown.Plan, shown.Anchor = agency.Terms.At(now).Plan, agency.Anchor
	return nil
}

// toNextTerms are the terms that begin later than an instant, or nil.
func toNextTerms(s *account.State, now time.Time) *body.NextTerms {
	next, effective, ok := s.Terms.Next(now)
	if !ok {
		return nil
	}
	return &body.NextTerms{Plan: next.Plan, Quota: next.Quota, Effective: effective.In(plan.Paris)}
}

// toNextAgency is the agency that is joined or left later than an instant, or nil. A join that was withdrawn before it began ends at the
// time of the instance that withdrew it. To an instance whose clock is behind, that end is still to come, although it changes nothing.
func toNextAgency(s *account.State, now time.Time) *body.NextAgency {
	next, effective, ok := s.Agency.Next(now)
	if !ok || next.Agency == s.AgencyAt(now) {
		return nil
	}
	return &body.NextAgency{Agency: next.Agency, Effective: effective.In(plan.Paris)}
}

// showState shows the account at an instant, read from its stream. Without an instant it is now, or the time of the last event
// where that is later: the event was recorded by an instance whose clock is ahead of this one's. So the state that is shown is
// never older than the last event in it. An instant that is still to come is refused, since its state is not known.
func (h *handler) showState(ctx context.Context, c call, in body.StateQuery) (kit.Response, error) {
	s, last, err := h.accounts.Commands.StateAsOf(ctx, c.Vars["id"], in.AsOf)
	if err != nil {
		return kit.Response{}, err
	}
	if in.AsOf.After(h.Now()) && in.AsOf.After(last.Time) {
		return kit.Response{}, problem.Violations(problem.Violation{Type: "value_error", Loc: []any{"query", "as_of"},
			Msg: "Value error, the instant is still to come: what stands on the log is known up to now", Input: map[string]any{"as_of": in.AsOf.Format(time.RFC3339Nano)}})
	}
	asOf := in.AsOf
	if asOf.IsZero() {
		asOf = h.Now().UTC().Truncate(time.Microsecond)
		if last.Time.After(asOf) {
			asOf = last.Time
		}
	}
	terms := s.Terms.At(asOf)
	shown := body.State{
		Account: s.ID, AsOf: asOf.UTC(), Position: uint64(last.Position), Name: string(s.Name), Plan: terms.Plan, Quota: terms.Quota,
		Anchor: s.Anchor, Agency: s.AgencyAt(asOf), IsAgency: s.IsAgency, NextTerms: toNextTerms(&s, asOf), NextAgency: toNextAgency(&s, asOf),
		Created: s.OpenedAt, Closed: s.ClosedAt, Keys: toValidKeys(&s),
	}
	return kit.OK(shown)
}

// toValidKeys are the valid keys, oldest first. A closed account has none.
func toValidKeys(s *account.State) []body.Key {
	valid := []body.Key{}
	for _, k := range s.Keys {
		if k.Active() && !s.Closed() {
			valid = append(valid, toKey(k))
		}
	}
	slices.SortFunc(valid, func(x, y body.Key) int {
		return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.ID, y.ID))
	})
	return valid
}
