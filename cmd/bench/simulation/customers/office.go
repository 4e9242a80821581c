package customers

import (
	"context"
	"net/http"
	"slices"

	"lieudit/cmd/bench/model"
)

// officeKinds are the reads of auditors, billing, customers and operators, and what operators do for the service itself.
func officeKinds() []kind {
	return []kind{
		look("look at usage", 4, "customer", "GET /accounts/{id}/usage", "/usage", true),
		look("look at another's usage", 2, "customer", "GET /accounts/{id}/usage", "/usage", false),
		look("look at the account", 2, "customer", "GET /accounts/{id}", "", true),
		look("look at keys", 2, "customer", "GET /accounts/{id}/keys", "/keys", true),
		look("look at another's keys", 1, "customer", "GET /accounts/{id}/keys", "/keys", false),
		look("look as an agency", 2, "agency", "GET /accounts/{id}/usage", "/usage", false),
		look("audit", 3, "auditor", "GET /accounts/{id}/history", "/history?limit=50", true),
		look("state of an account", 2, "auditor", "GET /accounts/{id}/state", "/state", true),
		look("auditor looks at keys", 1, "auditor", "GET /accounts/{id}/keys", "/keys", true),
		look("usage by day", 1, "customer", "GET /accounts/{id}/usage", "/usage?by=day", true),
		lookAt("list accounts", 1, "", "GET /accounts", "/accounts?limit=6"),
		lookAt("list accounts as an agency", 1, "agency", "GET /accounts", "/accounts"),
		lookAt("list tokens", 1, "", "GET /tokens", "/tokens?limit=4"),
		lookAt("auditor looks at tokens", 1, "auditor", "GET /tokens", "/tokens"),
		lookAt("vintages", 1, "", "GET /vintages", "/vintages"),
		lookAt("networks", 1, "", "GET /networks", "/networks"),
		lookAt("upgrade", 1, "", "GET /upgrade", "/upgrade"),
		{"adjust usage", 2, (*Customers).adjustUsage, 4, 0, true},
		{FinishUpgrade, 0, (*Customers).finishUpgrade, 0, 0, true},
		{"prune", 1, (*Customers).prune, 0, 0, true},
		{"export usage", 2, (*Customers).exportUsage, 0, 0, false},
		{"reconcile", 1, (*Customers).reconcile, 0, 0, false},
		{"revoke token", 1, (*Customers).revokeToken, 0, 0, true},
		{"projections", 1, (*Customers).listProjections, 0, 0, false},
		{"rebuild", 2, (*Customers).rebuild, 4, 0, true},
	}
}

// look reads something of the act's account with a token of a role, either of that account or of another.
func look(name string, weight int, role, endpoint, path string, own bool) kind {
	return kind{name, weight, func(c *Customers, ctx context.Context, act actDetails) {
		of := act.Account
		if !own {
			of = act.Other
		}
		if role == "agency" {
			of = accountID(act.Pick % agencyCount)
		}
		op := act.operation(act.Account)
		op.Endpoint = endpoint
		if op.Token = c.token(ctx, act, role, of); op.Token == "" {
			return
		}
		c.send(ctx, op, message{method: "GET", path: act.accountPath() + path})
	}, 0, 0, false}
}

// lookAt reads something that concerns no account, with a token of a role, or the operator's.
func lookAt(name string, weight int, role, endpoint, path string) kind {
	return kind{name, weight, func(c *Customers, ctx context.Context, act actDetails) {
		op := act.operation("")
		op.Endpoint = endpoint
		if role != "" {
			op.Token = c.token(ctx, act, role, accountID(act.Pick%agencyCount))
		}
		if op.Token != "" {
			c.send(ctx, op, message{method: "GET", path: path})
		}
	}, 0, 0, false}
}

// adjustUsage corrects a billed line, up or down. It does not retry: a second correction would count too.
func (c *Customers) adjustUsage(ctx context.Context, act actDetails) {
	line, ok := c.Model.PickBilled(act.Pick)
	if !ok {
		return
	}
	line.Requests = int64(act.Size)
	if act.Pick%2 == 0 {
		line.Requests = -line.Requests
	}
	op := act.operation("")
	op.Endpoint, op.OnUsage = "POST /usage:adjust", &line
	if op.Token = c.token(ctx, act, "billing", ""); op.Token == "" {
		return
	}
	c.sendOnce(ctx, op, message{method: "POST", path: "/usage:adjust", body: map[string]any{"contrat": line.Contract, "periode": line.Period,
		"jour": line.Day, "compte": line.Account, "cle": line.Key, "endpoint": line.Endpoint, "requetes": line.Requests, "reason": act.Label}})
}

// prune drops the copies of read models that nobody reads.
func (c *Customers) prune(ctx context.Context, act actDetails) {
	op := act.operation("")
	op.Endpoint = "POST /projections:prune"
	c.send(ctx, op, message{method: "POST", path: "/projections:prune", body: map[string]any{}})
}

// FinishUpgrade is the kind of acts that raise the format of the log. A script has them from the day on which an upgrade ends.
const FinishUpgrade = "finish upgrade"

func (c *Customers) finishUpgrade(ctx context.Context, act actDetails) {
	op := act.operation("")
	op.Endpoint = "POST /upgrade:finish"
	c.send(ctx, op, message{method: "POST", path: "/upgrade:finish", body: map[string]any{}})
}

// token returns the label of a token of a role, and issues one if there is none.
func (c *Customers) token(ctx context.Context, act actDetails, role, account string) string {
	if role != "customer" && role != "agency" {
		account = ""
	}
	if label := c.Model.FindToken(role, account); label != "" {
		return label
	}
	op := act.operation("")
	op.Endpoint = "POST /tokens"
	body := map[string]string{"role": role, "label": act.Label}
	if account != "" {
		body["account"] = account
	}
	a := c.send(ctx, op, message{method: "POST", path: "/tokens", body: body})
	issued, ok := decode[struct{ ID, Token string }](a)
	if !ok {
		return ""
	}
	c.Model.IssuedToken(issued.ID, role, account, issued.Token)
	return issued.ID
}

// revokeToken revokes a token that customers use, and keeps reading with it.
func (c *Customers) revokeToken(ctx context.Context, act actDetails) {
	id := c.Model.FindToken("customer", act.Account)
	if id == "" {
		return
	}
	op := act.operation("")
	op.Endpoint = "POST /tokens/{id}:revoke"
	c.Model.RevokesToken(id, false)
	a := c.send(ctx, op, message{method: "POST", path: "/tokens/" + id + ":revoke", body: map[string]string{"reason": act.Label}})
	if a.Status == 200 {
		c.Model.RevokesToken(id, true)
	}
	op = act.operation(act.Account)
	op.Token, op.Endpoint = id, "GET /accounts/{id}"
	c.sendOnce(ctx, op, message{method: "GET", path: act.accountPath()})
}

func (c *Customers) exportUsage(ctx context.Context, act actDetails) {
	op := act.operation("")
	op.Endpoint = "GET /usage"
	if op.Token = c.token(ctx, act, "billing", ""); op.Token != "" {
		c.send(ctx, op, message{method: "GET", path: "/usage?format=json"})
	}
}

func (c *Customers) reconcile(ctx context.Context, act actDetails) {
	op := act.operation("")
	op.Endpoint = "POST /usage:reconcile"
	if op.Token = c.token(ctx, act, "billing", ""); op.Token != "" {
		c.send(ctx, op, message{method: "POST", path: "/usage:reconcile", body: map[string]any{}})
	}
}

func (c *Customers) listProjections(ctx context.Context, act actDetails) {
	op := act.operation("")
	op.Endpoint = "GET /projections"
	c.send(ctx, op, message{method: "GET", path: "/projections"})
}

// projections are the read models, as GET /projections names them.
type projections struct {
	Results []projection `json:"results"`
}

type projection struct {
	Name    string `json:"name"`
	State   string `json:"etat"`
	Lag     *int   `json:"retard"`
	Reason  string `json:"raison"`
	Stopped []struct {
		Account string `json:"compte"`
		Reason  string `json:"raison"`
	} `json:"comptes_arretes"`
}

// isBehind reports whether a serving read model lacks events of the log, or its lag is unknown.
func (p projection) isBehind() bool { return p.State == "serving" && (p.Lag == nil || *p.Lag > 0) }

// rebuild rebuilds one projection, now and then.
func (c *Customers) rebuild(ctx context.Context, act actDetails) {
	if act.Size > 2 {
		return
	}
	op := act.operation("")
	op.Endpoint = "GET /projections"
	shown, ok := decode[projections](c.send(ctx, op, message{method: "GET", path: "/projections"}))
	if !ok || len(shown.Results) == 0 {
		return
	}
	op.Endpoint = "POST /projections/{name}:rebuild"
	c.send(ctx, op, message{method: "POST", path: "/projections/" + shown.Results[act.Pick%len(shown.Results)].Name + ":rebuild", body: map[string]any{}})
}

// PickOpen returns one of the open accounts, "" if there is none.
func (c *Customers) PickOpen(number int) string {
	open := slices.DeleteFunc(c.Model.Accounts(), func(id string) bool { return !c.Model.IsOpen(id) })
	if len(open) == 0 {
		return ""
	}
	return open[number%len(open)]
}

// Repair voids the events that nobody can decode in an account's streams, as an operator, and retries until it is done.
func (c *Customers) Repair(ctx context.Context, account string) {
	op := actDetails{Label: "repair"}.operation("")
	op.Endpoint = "POST /projections:repair"
	for try := range repairTries {
		op.Instance = try % c.world.Instances()
		a := c.send(ctx, op, message{method: "POST", path: "/projections:repair", body: map[string]any{"compte": account}})
		if a.Status == http.StatusOK {
			return
		}
	}
	c.world.Report(model.EveryAccountAnswers, "%s cannot be repaired", account)
}

// CheckStopped checks on every instance an account whose stream holds an event that nobody can decode. No instance may skip it.
func (c *Customers) CheckStopped(ctx context.Context, account string) {
	d := actDetails{Account: account, Label: "stopped"}
	op := d.operation(account)
	op.Endpoint = "GET /accounts/{id}"
	for op.Instance = range c.world.Instances() {
		if a := c.sendOnce(ctx, op, message{method: "GET", path: d.accountPath()}); a.Status == http.StatusOK {
			c.world.Report(model.NothingPassedOver, "instance %d shows %s: %s", op.Instance, account, a.Body)
		}
	}
}

// repairTries is how often an operator tries to repair an account: longer than any fault lasts.
const repairTries = 10
