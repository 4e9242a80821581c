package customerarea

import (
	"context"

	"lieudit/commands"
	"lieudit/http/kit"
	"lieudit/schemas/body"
)

// Upgrades is how far an upgrade of the program is, and its end. It must be safe for concurrent use.
type Upgrades interface {
	// Status returns the format of the log and the instances that run.
	Status(context.Context) (body.Upgrade, error)
	// Finish raises the log's format. While an instance runs that does not know it, it is refused with
	// refusal.UpgradeBlocked. Finished twice is finished once.
	Finish(context.Context, commands.Metadata) error
}

// showUpgrade shows which format the log has and which programs run.
func (h *handler) showUpgrade(ctx context.Context, _ call, _ body.Empty) (kit.Response, error) {
	shown, err := h.maintenance.Upgrades.Status(ctx)
	shown.Envelope = body.OKEnvelope
	return kit.Response{Body: shown}, err
}

// finishUpgrade lets every instance write what older programs cannot read, and shows the status from then on.
func (h *handler) finishUpgrade(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	if err := h.maintenance.Upgrades.Finish(ctx, metadata(c, "")); err != nil {
		return kit.Response{}, err
	}
	return h.showUpgrade(ctx, c, body.Empty{})
}
