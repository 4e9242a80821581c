package metering

import (
	"context"
	"fmt"
	"sync/atomic"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/plan"
)

// contract is an account that pays: for itself, or as an agency for its sub-clients too.
type contract struct {
	id       string // of the account that pays
	cap      int64  // requests that all its accounts may make together
	requests int64  // that clients send for it
	accounts []*account
	unsent   atomic.Int64 // requests that no client has begun
}

// account is an account that clients send requests for. The account that pays has the contract's cap as its quota.
type account struct {
	id       string
	contract *contract
	number   int // of all accounts of a run, from 0
	quota    int64
	requests int64 // that clients send for it

	served       atomic.Int64 // requests answered with 200
	unanswered   atomic.Int64 // requests answered with 503, or whose connection broke: each may have been counted
	earlyRefused atomic.Int64 // requests that were refused while a part of the quota was left
}

// newContracts plans the contracts of a run. The caps of all but the last are lower, each by the same step, so that they are met
// one after the other. The last contract is an agency, unless it is the only one. It sends requests itself. One of its
// sub-clients exhausts its own quota early, one later; the last is only stopped by the agency's cap.
func newContracts(o Options) (all []*contract) {
	last := o.Contracts - 1
	for i := range o.Contracts {
		c := &contract{id: fmt.Sprintf("contract-%d", i+1), cap: max(o.Cap*int64(o.Contracts+i+1)/int64(2*o.Contracts), 1), requests: o.Requests}
		isAgency := i == last && last > 0
		if isAgency {
			c.id = "agency"
		}
		c.accounts = []*account{{id: c.id, quota: c.cap}}
		if isAgency {
			for n, quota := range []int64{c.cap / 8, c.cap / 4, c.cap} {
				c.accounts = append(c.accounts, &account{id: fmt.Sprintf("client-%d", n+1), quota: max(quota, 1)})
			}
		}
		c.unsent.Store(c.requests)
		for n, a := range c.accounts {
			// takeRequest gives the accounts the numbers below requests in turn.
			a.contract, a.number, a.requests = c, i+n, (c.requests+int64(len(c.accounts)-1-n))/int64(len(c.accounts))
		}
		all = append(all, c)
	}
	return all
}

// isAgency reports whether the contract has sub-clients.
func (c *contract) isAgency() bool { return len(c.accounts) > 1 }

// takeRequest returns the account of the next request that no client has begun, nil if there is none.
func (c *contract) takeRequest() *account {
	n := c.unsent.Add(-1)
	if n < 0 {
		return nil
	}
	return c.accounts[n%int64(len(c.accounts))]
}

// mayBeExhausted reports whether an account can have reached its quota, or its contract the cap, when a request was refused. Counted by then are
// at most the requests that were answered or lost, and those that are on their way on other connections.
func (a *account) mayBeExhausted(connections int64) bool {
	own := a.served.Load() + a.unanswered.Load()
	var all int64
	for _, other := range a.contract.accounts {
		all += other.served.Load() + other.unanswered.Load()
	}
	return own+connections >= a.quota || all+connections >= a.contract.cap
}

// expectServed is how many requests are served if each is answered and none is counted without an answer: of each account at
// most its quota, and of all at most the cap.
func (c *contract) expectServed() (n int64) {
	for _, a := range c.accounts {
		n += min(a.quota, a.requests)
	}
	return min(n, c.cap)
}

// allAccounts returns the accounts of all contracts by their numbers.
func (r *run) allAccounts() (all []*account) {
	for _, c := range r.contracts {
		all = append(all, c.accounts...)
	}
	return all
}

// openContracts opens all accounts, on DISCOVERY if that plan allows their quotas, otherwise on BUSINESS. It issues the keys of
// all processes before any load, so that no key is issued while an instance is down.
func (r *run) openContracts(ctx context.Context) error {
	admin, err := r.instances[0].service.AdminClient()
	if err != nil {
		return err
	}
	for _, c := range r.contracts {
		if err := r.openContract(ctx, admin, c); err != nil {
			return err
		}
	}
	for _, i := range r.instances {
		for n := range processesPerInstance {
			p := &process{name: fmt.Sprintf("%s, life %d", i.name, n+1)}
			for _, a := range r.allAccounts() {
				key, err := admin.IssueKey(ctx, a.id, p.name)
				if err != nil {
					return err
				}
				p.tallies = append(p.tallies, &tally{key: key.ID, token: key.Token})
			}
			i.processes = append(i.processes, p)
		}
	}
	return nil
}

// openContract opens the account that pays, and then its sub-clients, which requires that it is an agency.
func (r *run) openContract(ctx context.Context, admin harness.AdminClient, c *contract) error {
	name := plan.Discovery
	if p, ok := plan.Lookup(name); ok && r.Cap > p.MaxQuota {
		name = plan.Business
	}
	for n, a := range c.accounts {
		open := body.OpenAccount{ID: a.id, Name: a.id, Plan: name, Quota: a.quota}
		if n > 0 {
			open.Agency = c.id
		}
		if _, err := admin.Post(ctx, "/accounts", open); err != nil {
			return err
		}
		if n == 0 && c.isAgency() {
			if _, err := admin.Post(ctx, adminclient.JoinPath("agency", "accounts", c.id), body.ChangeAgency{}); err != nil {
				return err
			}
		}
	}
	return nil
}
