package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
)

// admin is a client of an instance's customer area.
func (r *run) admin(s *slot) (harness.AdminClient, error) {
	c, err := adminclient.New("http://"+s.service.Area, r.operator)
	return harness.AdminClient{Client: c}, err
}

// checkEqual stops the clients for a moment, waits for the read models, and compares what every instance answers from them.
func (r *run) checkEqual(ctx context.Context) error {
	r.pause.Lock()
	defer r.pause.Unlock()
	var first map[string]string
	for n, s := range r.balancer {
		admin, err := r.admin(s)
		if err != nil {
			return err
		}
		if err := admin.WaitCaughtUp(ctx); err != nil {
			return err
		}
		digests, err := r.digestLists(ctx, s, admin)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if n == 0 {
			first = digests
			continue
		}
		r.compareDigests(s.name, first, digests)
	}
	return nil
}

// compareDigests reports the lists that differ from what another instance answered, or answered before.
func (r *run) compareDigests(name string, want, got map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if got[path] != want[path] {
			r.reportViolation("%s answers %s with %s, not %s", name, path, got[path], want[path])
			continue
		}
		r.report.Compared++ // written only between requests of clients, and by one goroutine
	}
}

// digestLists returns digests of the lists that one instance answers from the read models, by path.
func (r *run) digestLists(ctx context.Context, s *slot, admin harness.AdminClient) (map[string]string, error) {
	api, err := adminclient.NewAPI("http://"+s.service.API, r.writer.reader.Token)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for path, client := range map[string]*adminclient.Client{
		"/accounts":                                         admin.Client,
		"/accounts/" + writerAccount + "/keys":              admin.Client,
		"/accounts/" + writerAccount + "/history":           admin.Client,
		"/locations/referentiels/" + referential + "/sites": api,
	} {
		sum, n := sha256.New(), 0
		for one, err := range client.List(ctx, path, url.Values{"limit": {"1000"}}) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			n++
			sum.Write(harness.WithoutLastUse(one))
		}
		digests[path] = fmt.Sprintf("%d items, %x", n, sum.Sum(nil)[:8])
	}
	return digests, nil
}

// checkUpgradeStatus checks that this program lists all instances, and does not finish while an old one prevents it.
func (r *run) checkUpgradeStatus(ctx context.Context) error {
	i := slices.IndexFunc(r.balancer[:], func(s *slot) bool { return s.isNew })
	if i < 0 {
		return nil
	}
	admin, err := r.admin(r.balancer[i])
	if err != nil {
		return err
	}
	status, err := readUpgrade(admin.Get(ctx, "/upgrade", nil))
	if err != nil {
		return err
	}
	isBlocked := slices.ContainsFunc(status.Instances, func(i body.RunningInstance) bool { return i.IsBlocking })
	if len(status.Instances) != instances {
		r.reportViolation("upgrade status lists %d instances of %d", len(status.Instances), instances)
	}
	if !isBlocked {
		return nil // the old program knows the format too, or does not run
	}
	if _, err := admin.Post(ctx, "/upgrade:finish", body.Empty{}); err == nil || !strings.Contains(err.Error(), "mise_a_niveau_bloquee") {
		r.reportViolation("upgrade finish, while an older instance runs: %v", err)
	}
	if status.Format >= event.SessionsFormat {
		return nil
	}
	if _, err := admin.Post(ctx, "/sessions:link", body.Empty{}); err == nil || !strings.Contains(err.Error(), "mise_a_niveau_inachevee") {
		r.reportViolation("a link for a session, which the older instance would not know: %v", err)
	}
	return nil
}

// finish finishes the upgrade under load.
func (r *run) finish(ctx context.Context) error {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	status, err := readUpgrade(admin.Post(ctx, "/upgrade:finish", body.Empty{}))
	if err != nil {
		return err
	}
	if r.report.Format = status.Format; status.Format != status.KnownFormat {
		r.reportViolation("the finished upgrade left the log at format %d of %d", status.Format, status.KnownFormat)
	}
	if _, err := admin.Post(ctx, "/sessions:link", body.Empty{}); err != nil {
		r.reportViolation("a link for a session after the upgrade: %v", err)
	}
	return nil
}

func readUpgrade(raw json.RawMessage, err error) (u body.Upgrade, _ error) {
	if err != nil {
		return u, err
	}
	return u, json.Unmarshal(raw, &u)
}

// checkEnd checks, when the clients have ended, that every acknowledged write is there, that every account's count matches its answers, and
// that read models rebuilt from the log answer the same.
func (r *run) checkEnd(ctx context.Context) error {
	if err := r.checkEqual(ctx); err != nil {
		return err
	}
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	if err := r.checkSites(ctx); err != nil {
		return err
	}
	if err := r.checkUsage(ctx, admin); err != nil {
		return err
	}
	for _, a := range r.accounts {
		if err := r.checkMetered(ctx, admin, a); err != nil {
			return err
		}
	}
	r.checkContracts()
	if err := r.checkReconciliation(ctx, admin); err != nil {
		return err
	}
	return r.checkRebuild(ctx, admin)
}

// checkSites has the model compare the sites with the writes.
func (r *run) checkSites(ctx context.Context) error {
	api, err := adminclient.NewAPI("http://"+r.balancer[0].service.API, r.writer.reader.Token)
	if err != nil {
		return err
	}
	list, err := api.Get(ctx, "/locations/referentiels", nil)
	if err != nil {
		return err
	}
	var all struct {
		Results []json.RawMessage `json:"results"`
	}
	for raw, err := range api.List(ctx, "/locations/referentiels/"+referential+"/sites", url.Values{"limit": {"1000"}}) {
		if err != nil {
			return err
		}
		all.Results = append(all.Results, raw)
	}
	sites, err := json.Marshal(all)
	if err != nil {
		return err
	}
	r.model.SettlePlaces(writerAccount, model.Answer{Status: http.StatusOK, Body: list}, map[string]model.Answer{referential: {Status: http.StatusOK, Body: sites}})
	return nil
}

// checkUsage has the model compare what is billed with what was answered: every served request, and beyond that at most the requests whose
// answer was lost. It leaves out the requests of the checks.
func (r *run) checkUsage(ctx context.Context, admin harness.AdminClient) error {
	raw, err := admin.Get(ctx, "/usage", url.Values{"format": {"json"}})
	var billed struct{ Results []model.BilledLine }
	if err == nil {
		err = json.Unmarshal(raw, &billed)
	}
	if err != nil {
		return err
	}
	r.model.SettleUsage(slices.DeleteFunc(billed.Results, func(b model.BilledLine) bool { return b.Key == r.writer.reader.ID }))
	return nil
}

// checkMetered reads the count of an account of a phase and adds it to the phase: never more than its quota.
func (r *run) checkMetered(ctx context.Context, admin harness.AdminClient, a *metered) error {
	raw, err := admin.Get(ctx, "/accounts/"+a.id+"/usage", nil)
	var usage body.Usage
	if err == nil {
		err = json.Unmarshal(raw, &usage)
	}
	if err != nil {
		return err
	}
	a.counted = usage.Total
	r.model.CheckUsage(a.id, model.Answer{Status: http.StatusOK, Body: raw}, time.Now())
	if a.served.Load() > a.quota || a.counted > a.quota {
		r.reportViolation("%s: %d were served and %d counted, the cap is %d", a.id, a.served.Load(), a.counted, a.quota)
	}
	r.report.Phases[a.phase].add(a)
	return nil
}

// add adds what an account got to its phase.
func (p *Phase) add(a *metered) {
	p.Served += a.served.Load()
	p.Spent += a.spent.Load()
	p.Cut += a.cut.Load()
	p.Counted += a.counted
	p.OutdatedServed += a.outdatedServed.Load()
	p.OutdatedRefused += a.outdatedRefused.Load()
}

// checkContracts checks that each contract, an agency with its sub-clients, passed its cap never and reached it.
func (r *run) checkContracts() {
	for _, payer := range r.accounts {
		if payer.agency != "" {
			continue
		}
		var served, counted, spent int64
		for _, a := range r.accounts {
			if a == payer || a.agency == payer.id {
				served, counted, spent = served+a.served.Load(), counted+a.counted, spent+a.spent.Load()
			}
		}
		if served > payer.quota || counted > payer.quota {
			r.reportViolation("contract %s: %d were served and %d counted, the cap is %d", payer.id, served, counted, payer.quota)
		} else if spent == 0 {
			r.reportViolation("contract %s: its cap was never reached, so that nothing was tested; use a smaller one", payer.id)
		}
	}
}

// checkReconciliation folds the log again and compares it with what is billed.
func (r *run) checkReconciliation(ctx context.Context, admin harness.AdminClient) error {
	raw, err := admin.Post(ctx, "/usage:reconcile", body.Empty{})
	var found body.Reconciliation
	if err == nil {
		err = json.Unmarshal(raw, &found)
	}
	if err == nil && len(found.Differences) > 0 {
		r.reportViolation("reconcile finds %d differences: %+v", len(found.Differences), found.Differences[0])
	}
	return err
}

// checkRebuild rebuilds every read model from the log that both programs wrote, and compares.
func (r *run) checkRebuild(ctx context.Context, admin harness.AdminClient) error {
	before, err := r.digestLists(ctx, r.balancer[0], admin)
	if err != nil {
		return err
	}
	if _, err := admin.Post(ctx, "/projections:rebuild", body.Empty{}); err != nil {
		return err
	}
	if err := admin.WaitCaughtUp(ctx); err != nil {
		return err
	}
	after, err := r.digestLists(ctx, r.balancer[0], admin)
	if err != nil {
		return err
	}
	r.compareDigests("a rebuild", before, after)
	return nil
}
