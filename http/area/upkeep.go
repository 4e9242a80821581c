package area

import (
	"net/http"

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
