package upgrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

const (
	writerAccount = "writer"
	referential   = "shops"
	sitesOfWriter = 50 // that each client writes over and over
)

// writer is the account whose sites are written. The reader of its lists has a key of its own, which the model does not know.
type writer struct {
	key    string
	reader body.Key
	writes atomic.Int64
}

// metered is an account of a phase, whose quota clients use up.
type metered struct {
	phase           int // index of Report.Phases
	id, key, agency string
	quota           int64
	served, spent   atomic.Int64 // answers of 200 and 429
	cut             atomic.Int64 // requests whose connection broke

	outdatedServed, outdatedRefused atomic.Int64 // answers of 200 and 503 by an outdated instance
	counted                         int64        // by the log in the end
}

// keyLabel is the label of the key of each account that clients use.
const keyLabel = "bench"

// openAccount opens an account with a key, of an agency or "", waits until every instance accepts the key, and informs the model.
func (r *run) openAccount(ctx context.Context, id, agency string, quota int64) (key body.Key, err error) {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return key, err
	}
	open := model.OpenAccount{ID: id, Name: id, Plan: string(plan.Business), Quota: quota, Anchor: model.Day(time.Now()), Agency: agency}
	asked := map[string]any{"id": id, "nom": id, "plan": open.Plan, "quota": quota, "debut_periode": open.Anchor}
	if agency != "" { // which decides when its periods begin
		delete(asked, "debut_periode")
		asked["agence_de"] = agency
	}
	if _, err := r.command(open, id, http.StatusCreated, func() (json.RawMessage, error) {
		return admin.Post(ctx, "/accounts", asked)
	}); err != nil {
		return key, err
	}
	raw, err := r.command(model.IssueKey{Kind: string(token.Secret), Label: keyLabel}, id, http.StatusCreated, func() (json.RawMessage, error) {
		return admin.Post(ctx, "/accounts/"+id+"/keys", body.IssueKey{Kind: token.Secret, Label: keyLabel})
	})
	if err != nil {
		return key, err
	}
	if err := json.Unmarshal(raw, &key); err != nil {
		return key, err
	}
	return key, r.waitKeyKnown(ctx, key.Token)
}

// command sends a command on an account and has the model check the answer. Without an answer the run ends.
func (r *run) command(command model.AccountCommand, id string, status int, post func() (json.RawMessage, error)) (json.RawMessage, error) {
	call := r.model.Begin(model.Operation{Account: id, Token: model.Operator, OnAccount: command, Text: "POST"}, time.Now())
	raw, err := post()
	if err == nil {
		r.model.End(call, model.Answer{Status: status, Body: raw, IsSent: true}, time.Now())
	}
	return raw, err
}

// addPhase adds a phase to the report and returns its index.
func (r *run) addPhase(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Phases = append(r.report.Phases, Phase{Name: name})
	return len(r.report.Phases) - 1
}

// addMetered opens an account of a phase, of an agency or "". The cap of a contract is added to that of the phase.
func (r *run) addMetered(ctx context.Context, phase int, id, agency string, quota int64) (*metered, error) {
	key, err := r.openAccount(ctx, id, agency, quota)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	a := &metered{phase: phase, id: id, key: key.Token, agency: agency, quota: quota}
	if agency == "" {
		r.report.Phases[phase].Cap += quota // which no client uses
	}
	r.accounts = append(r.accounts, a)
	return a, nil
}

// openMetered opens the account of a phase and lets the clients use it from now on.
func (r *run) openMetered(ctx context.Context, phase string) (*metered, error) {
	a, err := r.addMetered(ctx, r.addPhase(phase), "metered-"+strings.ReplaceAll(phase, " ", "-"), "", r.Cap)
	if err == nil {
		r.metered.Store(a)
	}
	return a, err
}

// waitKeyKnown waits until every instance accepts a key. It requests a path that does not exist, which is not counted.
func (r *run) waitKeyKnown(ctx context.Context, key string) error {
	for _, s := range r.balancer {
		if err := waitKnown(ctx, s, key); err != nil {
			return err
		}
	}
	return nil
}

// waitKnown waits until one instance accepts a key.
func waitKnown(ctx context.Context, s *slot, key string) error {
	return harness.Retry(ctx, 10*time.Second, 10*time.Millisecond, func() error {
		a := request{method: "GET", path: "/nowhere", key: key}.send(ctx, s.target.Load().host)
		if a.status != http.StatusNotFound {
			return fmt.Errorf("%s does not know a key: %d %w", s.name, a.status, a.err)
		}
		return nil
	})
}

// startClients starts the clients. stop ends them and returns the first error.
func (r *run) startClients(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var clients errgroup.Group
	for n := range r.Clients {
		clients.Go(func() error { return r.readMetered(ctx) })
		clients.Go(func() error { return r.writeSites(ctx, n) })
	}
	return func() error {
		cancel()
		return clients.Wait()
	}
}

// readMetered uses up the quota of the running phase, and continues to ask after that.
func (r *run) readMetered(ctx context.Context) error {
	for ctx.Err() == nil {
		r.pause.RLock()
		r.read(ctx, r.metered.Load())
		r.pause.RUnlock()
	}
	return nil
}

// meteredRequest is the request that uses up quotas.
func (a *metered) meteredRequest() request {
	return request{account: a.id, key: a.key, method: "GET", path: "/me", endpoint: "GET /me"}
}

// read sends a request of an account to the instances of the balancer, and returns its status.
func (r *run) read(ctx context.Context, a *metered) (status int) {
	status, cut, err := r.send(ctx, a.meteredRequest())
	a.cut.Add(int64(cut))
	switch {
	case err != nil: // ctx has ended
	case status == http.StatusOK:
		a.served.Add(1)
	case status == http.StatusTooManyRequests:
		a.spent.Add(1)
	default:
		r.reportViolation("GET /me of %s: %d", a.id, status)
	}
	return status
}

// writeSites writes the sites of one client in turn, each with a new name.
func (r *run) writeSites(ctx context.Context, client int) error {
	for n := 0; ctx.Err() == nil; n++ {
		id, name := fmt.Sprintf("c%d-%d", client, n%sitesOfWriter), fmt.Sprintf("Boutique %d, version %d", n%sitesOfWriter, n/sitesOfWriter)
		r.pause.RLock()
		// A write that has begun is finished: only a known outcome can be compared.
		status, _, err := r.send(context.WithoutCancel(ctx), request{
			account: writerAccount, key: r.writer.key, method: "PUT", path: "/locations/referentiels/" + referential + "/sites/" + id,
			endpoint: "PUT /locations/referentiels/{code}/sites/{external_id}", body: fmt.Sprintf(`{"nom":%q,"proprietes":{"nom":%[1]q}}`, name),
			command: model.PutSite{Code: referential, ExternalID: id, Name: name},
		})
		if err != nil || status != http.StatusOK && status != http.StatusCreated {
			r.reportViolation("PUT of %s: %d %v", id, status, err)
		} else {
			r.writer.writes.Add(1)
		}
		r.pause.RUnlock()
	}
	return nil
}

// send sends a request to the instances in turn until one answers. It tries the next one if the connection is refused, or ends without an
// answer; cut counts the latter. An answer of 5xx is a violation, and is retried, so that the load continues. The model checks each answer.
func (r *run) send(ctx context.Context, q request) (status, cut int, err error) {
	began := time.Now()
	var refused, failed int64
	for {
		at := r.balancer[int(r.next.Add(1))%instances]
		to := at.target.Load()
		a := r.sendOnce(ctx, q, to.host, 0)
		switch {
		case ctx.Err() != nil:
			return 0, cut, ctx.Err()
		case a.status >= 500:
			failed++
			r.reportViolation("%s %s on %s: %d %.100s", q.method, q.path, at.name, a.status, a.body)
		case a.status > 0:
			r.count(refused, failed, time.Since(began))
			return a.status, cut, nil
		case a.isRefused():
			refused++
		default:
			cut++
			r.countCut(to.isNew)
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return 0, cut, err
		}
	}
}

// sendOnce sends a request to one instance, which has a number, and has the model check the answer.
func (r *run) sendOnce(ctx context.Context, q request, host string, number int) answer {
	call := r.model.Begin(model.Operation{
		Text: q.method + " " + q.path, Instance: number, Account: q.account, Endpoint: q.endpoint, Key: keyLabel, Weight: 1, OnPlaces: q.command,
	}, time.Now())
	a := q.send(ctx, host)
	r.model.End(call, model.Answer{Status: a.status, Body: a.body, IsSent: !a.isRefused()}, time.Now())
	return a
}

// count adds an answered request to the report.
func (r *run) count(refused, failed int64, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Requests++
	r.report.Refused += refused
	r.report.Failed += failed
	r.report.Longest = max(r.report.Longest, took)
}

// countCut adds a connection that ended without an answer to the report.
func (r *run) countCut(byNew bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Cut++
	if byNew {
		r.report.CutByNew++
	}
}

// answer is the result of one request. status is 0 if there is no answer.
type answer struct {
	status int
	body   []byte
	err    error
}

// isRefused reports whether no connection could be made, so that certainly nothing was done.
func (a answer) isRefused() bool {
	var dial *net.OpError
	return errors.As(a.err, &dial) && dial.Op == "dial"
}

// request is a request to the API. command is its command on the account's sites; nil: none.
type request struct {
	account, key, method, path, endpoint, body string
	command                                    model.PlacesCommand
}

// send sends the request to the API at host once, over a connection of its own: an idle connection that an instance closes would look like a
// lost answer.
func (q request) send(ctx context.Context, host string) answer {
	req, err := http.NewRequestWithContext(ctx, q.method, "http://"+host+adminclient.APIPath+q.path, strings.NewReader(q.body))
	if err != nil {
		return answer{err: err}
	}
	req.Close = true
	req.Header.Set("Authorization", "Bearer "+q.key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil { // half an answer counts as none
		return answer{err: err}
	}
	return answer{status: resp.StatusCode, body: bytes.TrimSpace(text)}
}
