package starts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
)

// errShownOtherwise means that a figure is of something else than it says.
var errShownOtherwise = errors.New("the service shows other requests than were written")

// checkUsage compares the requests that the service shows for each account with those that were written and sent, and has it reconcile if the
// options say so.
func (r *run) checkUsage(ctx context.Context) error {
	token, err := harness.ReadOperatorToken(ctx, r.Path(r.bootstrapName()))
	if err != nil {
		return err
	}
	client, err := adminclient.New("http://"+r.instance.Area, token)
	if err != nil {
		return err
	}
	if err := (harness.AdminClient{Client: client}).WaitCaughtUp(ctx); err != nil {
		return err
	}
	written := int64(0)
	for n, a := range r.accounts {
		r.reportProgress("accounts are compared", n, len(r.accounts))
		raw, err := client.Get(ctx, adminclient.JoinPath("", "accounts", a.ID, "usage"), nil)
		var shown body.Usage
		if err == nil {
			err = json.Unmarshal(raw, &shown)
		}
		if err != nil {
			return err
		}
		if shown.Total != a.requests {
			return fmt.Errorf("%w: %d of %s, want %d", errShownOtherwise, shown.Total, a.ID, a.requests)
		}
		written += a.requests
	}
	if !r.Reconcile {
		return nil
	}
	return r.reconcile(ctx, client, written)
}

// reconcile has the service fold the whole log and compare it with what it shows. The last start was after a kill, so that the request
// before it is listed as unanswered.
func (r *run) reconcile(ctx context.Context, client *adminclient.Client, written int64) error {
	r.Progress("the service reconciles", 0, 0)
	raw, err := client.WithoutTimeout().Post(ctx, "/usage:reconcile", body.ReconcileUsage{})
	if err != nil {
		return err
	}
	var found body.Reconciliation
	if err := json.Unmarshal(raw, &found); err != nil {
		return err
	}
	if len(found.Differences) > 0 || found.Requests != written {
		return fmt.Errorf("%w: reconcile finds %d requests, want %d, and %d differences: %+v", errShownOtherwise, found.Requests, written, len(found.Differences), found.Differences)
	}
	return nil
}
