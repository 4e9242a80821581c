package customerarea

import (
	"net/http"
	"strings"

	"lieudit/schemas/body"
)

func (h *handler) listProjections(r *http.Request, _ call, _ body.Empty) (response, error) {
	all, err := h.ReadModels.Status(r.Context())
	return response{status: http.StatusOK, body: body.Projections{Envelope: body.OKEnvelope, Results: all}}, err
}

func (h *handler) rebuildProjection(r *http.Request, c call, _ body.Empty) (response, error) {
	if err := h.ReadModels.Rebuild(r.Context(), c.vars["name"]); err != nil {
		return response{}, err
	}
	return h.acceptRebuild(r, c)
}

func (h *handler) rebuildAllProjections(r *http.Request, c call, _ body.Empty) (response, error) {
	if err := h.ReadModels.RebuildAll(r.Context()); err != nil {
		return response{}, err
	}
	return h.acceptRebuild(r, c)
}

// acceptRebuild answers a rebuild, which is not done yet.
func (h *handler) acceptRebuild(r *http.Request, c call) (response, error) {
	shown, err := h.listProjections(r, c, body.Empty{})
	shown.status = http.StatusAccepted
	return shown, err
}

func (h *handler) pruneProjections(r *http.Request, c call, _ body.Empty) (response, error) {
	if err := h.ReadModels.Prune(r.Context()); err != nil {
		return response{}, err
	}
	return h.listProjections(r, c, body.Empty{})
}

// repairStream voids the events of an account that cannot be used. The read models write its rows again when they come to the
// corrections. Where there are none, rows that are stopped for another reason are written again.
func (h *handler) repairStream(r *http.Request, c call, in body.Repair) (response, error) {
	void, id := h.Repairs.RepairAccount, in.Account
	if token, ok := strings.CutPrefix(in.Account, "/token-"); ok {
		void, id = h.Repairs.RepairToken, token
	}
	found, err := void(r.Context(), id, c.metadata(in.Reason))
	if err == nil && len(found) == 0 {
		err = h.ReadModels.Refold(r.Context(), in.Account)
	}
	if err != nil {
		return response{}, err
	}
	shown := body.Repaired{Envelope: body.OKEnvelope, Results: make([]body.VoidedEvent, len(found))}
	for i, v := range found {
		shown.Results[i] = body.VoidedEvent{
			Stream: v.Stream, Revision: v.Revision, Position: uint64(v.Position), EventID: v.EventID, Type: v.Type, Reason: v.Reason,
		}
	}
	return okResponse(shown)
}
