package customerarea

import (
	"context"

	"lieudit/http/kit"
	"lieudit/schemas/body"
)

// Releases is the data that the service answers from. It must be safe for concurrent use.
type Releases interface {
	// Vintages is the vintage of the address base that is served, or why none is.
	Vintages(context.Context) body.ServedVintages
	// Networks is the road network that is served, or why none is.
	Networks(context.Context) body.ServedNetworks
}

// listVintages shows which addresses are served.
func (h *handler) listVintages(ctx context.Context, _ call, _ body.Empty) (kit.Response, error) {
	shown := h.maintenance.Releases.Vintages(ctx)
	shown.Envelope = body.OKEnvelope
	return kit.OK(shown)
}

// showReadiness shows what works on the instance that answers, and what can be done about the rest.
func (h *handler) showReadiness(ctx context.Context, _ call, in body.ReadinessQuery) (kit.Response, error) {
	return kit.OK(h.maintenance.Readiness(ctx, in.Language))
}

// listNetworks shows which road network is served.
func (h *handler) listNetworks(ctx context.Context, _ call, _ body.Empty) (kit.Response, error) {
	shown := h.maintenance.Releases.Networks(ctx)
	shown.Envelope = body.OKEnvelope
	return kit.OK(shown)
}
