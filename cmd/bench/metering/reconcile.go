package metering

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
)

// reconciliation is what one instance says about the whole log at the end of a run.
type reconciliation struct {
	instance string
	found    body.Reconciliation
	billed   map[string]int64 // requests by key, as an export of usage lists them
}

// reconcile starts every instance once more on its data folder, has each compare its read model of usage with the log (lieudit
// usage reconcile) and export what is billed, and stops them. The log is complete by then. Each instance has read models of its
// own, unless they are in Postgres.
func (r *run) reconcile(ctx context.Context) ([]reconciliation, error) {
	token, err := harness.ReadOperatorToken(ctx, r.instances[0].service.DataDir)
	if err != nil {
		return nil, err
	}
	all := make([]reconciliation, len(r.instances))
	var work errgroup.Group
	for n, i := range r.instances {
		work.Go(func() (err error) {
			if err := r.startReady(ctx, i); err != nil {
				return err
			}
			all[n], err = i.reconcile(ctx, token)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	return all, r.stopInstances()
}

// reconcile asks one instance for its reconciliation and its export. The read model has caught up when it is exported.
func (i *instance) reconcile(ctx context.Context, token string) (found reconciliation, err error) {
	found = reconciliation{instance: i.name, billed: map[string]int64{}}
	admin, err := adminclient.New("http://"+i.service.Area, token)
	if err != nil {
		return found, err
	}
	raw, err := admin.WithoutTimeout().Post(ctx, "/usage:reconcile", body.ReconcileUsage{})
	if err != nil {
		return found, err
	}
	if err := json.Unmarshal(raw, &found.found); err != nil {
		return found, err
	}
	if raw, err = admin.Get(ctx, "/usage", url.Values{"format": {"json"}}); err != nil {
		return found, err
	}
	var export struct{ Results []body.BilledLine }
	if err := json.Unmarshal(raw, &export); err != nil {
		return found, err
	}
	for _, l := range export.Results {
		found.billed[l.Key] += l.Requests
	}
	return found, nil
}

// checkReconciliation checks that an instance finds no difference, that it bills for each key what the log counts, and that it
// lists unanswered requests of killed processes only.
func (rep *Report) checkReconciliation(got reconciliation, totals *logTotals) {
	var counted int64
	for _, n := range totals.countedByKey {
		counted += n
	}
	for _, d := range got.found.Differences {
		rep.addViolation("%s reconciles: %+v", got.instance, d)
	}
	if got.found.Requests != counted {
		rep.addViolation("%s reconciles %d requests, the log counts %d", got.instance, got.found.Requests, counted)
	}
	for key, n := range totals.countedByKey {
		if got.billed[key] != n {
			rep.addViolation("%s bills %d requests with key %s, the log counts %d", got.instance, got.billed[key], key, n)
		}
		delete(got.billed, key)
	}
	for key, n := range got.billed {
		rep.addViolation("%s bills %d requests with key %s, which the log does not count", got.instance, n, key)
	}
	wasKilled := map[string]bool{}
	for _, p := range rep.Processes {
		wasKilled[p.InstanceID] = p.Killed
	}
	for _, u := range got.found.Unanswered {
		if !wasKilled[u.InstanceID] {
			rep.addViolation("%s lists %d requests of %s as unanswered, which was not killed", got.instance, u.Requests, u.InstanceID)
		}
	}
}

// listedUnanswered returns how many requests may be unanswered by process, as one instance lists them.
func listedUnanswered(of reconciliation) map[string]int64 {
	listed := map[string]int64{}
	for _, u := range of.found.Unanswered {
		listed[u.InstanceID] += u.Requests
	}
	return listed
}
