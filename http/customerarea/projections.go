package customerarea

import (
	"context"
	"net/http"
	"strings"

	"lieudit/commands/repair"
	"lieudit/http/kit"
	"lieudit/schemas/body"
)

// Maintenance is what operators need to look after read models, damaged streams, the data that is served and upgrades. Every
// part is required.
type Maintenance struct {
	ReadModels ReadModels
	Repairs    *repair.Repairs
	Releases   Releases
	Readiness  func(ctx context.Context, language string) body.Readiness // of this instance, as /readyz has it, with advice in the language fr or en
	Upgrades   Upgrades
}

// ReadModels is what can be done about the read models. A generation is one filling of the rows of a read model: while one serves,
// another can be filled. It must be safe for concurrent use.
type ReadModels interface {
	// Status returns every generation of every read model.
	Status(context.Context) ([]body.Projection, error)
	// Rebuild begins to fill a new generation of a read model while the present one serves, and returns before it is full. An
	// unknown name is refusal.NotFound.
	Rebuild(ctx context.Context, name string) error
	// RebuildAll is Rebuild of every read model.
	RebuildAll(context.Context) error
	// Prune drops the generations that nobody reads.
	Prune(context.Context) error
	// Refold requests that the rows of an account are written again from its streams, in the generations that have stopped for
	// this account. It does not wait for that. account may be "/token-" and the id of a customer-area token.
	Refold(ctx context.Context, account string) error
}

// listProjections shows the status of every generation of every read model.
func (h *handler) listProjections(ctx context.Context, _ call, _ body.Empty) (kit.Response, error) {
	all, err := h.maintenance.ReadModels.Status(ctx)
	return kit.Response{Body: body.Projections{Envelope: body.OKEnvelope, Results: all}}, err
}

// rebuildProjection begins to fill a new generation of one read model.
func (h *handler) rebuildProjection(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	if err := h.maintenance.ReadModels.Rebuild(ctx, c.Vars["name"]); err != nil {
		return kit.Response{}, err
	}
	return h.acceptRebuild(ctx, c)
}

// rebuildAllProjections begins to fill a new generation of every read model.
func (h *handler) rebuildAllProjections(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	if err := h.maintenance.ReadModels.RebuildAll(ctx); err != nil {
		return kit.Response{}, err
	}
	return h.acceptRebuild(ctx, c)
}

// acceptRebuild answers 202: the rebuild has begun and continues.
func (h *handler) acceptRebuild(ctx context.Context, c call) (kit.Response, error) {
	shown, err := h.listProjections(ctx, c, body.Empty{})
	shown.Status = http.StatusAccepted
	return shown, err
}

// pruneProjections drops the generations that nobody reads, and shows what is left.
func (h *handler) pruneProjections(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	if err := h.maintenance.ReadModels.Prune(ctx); err != nil {
		return kit.Response{}, err
	}
	return h.listProjections(ctx, c, body.Empty{})
}

// repairStream voids the events of an account, or of a token, that no fold can use: it appends corrections, and every fold skips
// the voided events from then on. The read models write the rows again when they apply the corrections. Where there was nothing
// to void, rows that stopped for another reason are written again. "/token-" before an id names a token: no account id has a
// slash.
func (h *handler) repairStream(ctx context.Context, c call, in body.Repair) (kit.Response, error) {
	void, id := h.maintenance.Repairs.RepairAccount, in.Account
	if token, ok := strings.CutPrefix(in.Account, "/token-"); ok {
		void, id = h.maintenance.Repairs.RepairToken, token
	}
	found, err := void(ctx, id, metadata(c, in.Reason))
	if err == nil && len(found) == 0 {
		err = h.maintenance.ReadModels.Refold(ctx, in.Account)
	}
	if err != nil {
		return kit.Response{}, err
	}
	shown := body.Repaired{Envelope: body.OKEnvelope, Results: make([]body.VoidedEvent, len(found))}
	for i, v := range found {
		shown.Results[i] = body.VoidedEvent{
			Stream: v.Stream, Revision: v.Revision, Position: uint64(v.Position), EventID: v.EventID, Type: v.Type, Reason: v.Reason,
		}
	}
	return kit.OK(shown)
}
