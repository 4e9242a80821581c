package area

import (
	"net/http"
	"strings"

	"lieudit/schemas/body"
)

func (a *area) projections(r *http.Request, _ call, _ body.Empty) (reply, error) {
	all, err := a.ReadModels.Status(r.Context())
	return reply{status: http.StatusOK, body: body.Projections{Envelope: body.OK, Results: all}}, err
}

func (a *area) rebuild(r *http.Request, c call, _ body.Empty) (reply, error) {
	if err := a.ReadModels.Rebuild(r.Context(), c.vars["name"]); err != nil {
		return reply{}, err
	}
	return a.begun(r, c)
}

func (a *area) rebuildAll(r *http.Request, c call, _ body.Empty) (reply, error) {
	if err := a.ReadModels.RebuildAll(r.Context()); err != nil {
		return reply{}, err
	}
	return a.begun(r, c)
}

// begun answers a rebuild, which is not done yet.
func (a *area) begun(r *http.Request, c call) (reply, error) {
	shown, err := a.projections(r, c, body.Empty{})
	shown.status = http.StatusAccepted
	return shown, err
}

func (a *area) prune(r *http.Request, c call, _ body.Empty) (reply, error) {
	if err := a.ReadModels.Prune(r.Context()); err != nil {
		return reply{}, err
	}
	return a.projections(r, c, body.Empty{})
}

// repair voids the events of an account that cannot be used. The read models write its rows again when they come to the
// corrections. Where there are none, rows that are stopped for another reason are written again.
func (a *area) repair(r *http.Request, c call, in body.Repair) (reply, error) {
	do, id := a.Repairs.Account, in.Account
	if token, ok := strings.CutPrefix(in.Account, "/token-"); ok {
		do, id = a.Repairs.Token, token
	}
	found, err := do(r.Context(), id, c.intent(in.Reason))
	if err == nil && len(found) == 0 {
		err = a.ReadModels.Refold(r.Context(), in.Account)
	}
	if err != nil {
		return reply{}, err
	}
	shown := body.Repaired{Envelope: body.OK, Results: make([]body.VoidedEvent, len(found))}
	for i, v := range found {
		shown.Results[i] = body.VoidedEvent{
			Stream: v.Stream, Revision: v.Revision, Position: uint64(v.Position), Event: v.Event, Type: v.Type, Why: v.Why,
		}
	}
	return ok(shown)
}
