package customers

import (
	"context"
	"time"

	"lieudit/cmd/bench/model"
)

// accountKinds are the decisions of operators, customers and agencies about accounts and keys.
func accountKinds() []kind {
	return []kind{
		{"issue key", 3, func(c *Customers, ctx context.Context, act actDetails) {
			c.as(ctx, act, func(act actDetails) { c.issueKey(ctx, act, "secret") })
		}, 0, 0, true},
		{"issue publishable key", 3, func(c *Customers, ctx context.Context, act actDetails) {
			c.as(ctx, act, func(act actDetails) { c.issueKey(ctx, act, "publishable") })
		}, 0, 0, true},
		{"revoke key", 3, (*Customers).revokeKey, 0, 0, true},
		{"revoke key in the middle", 2, (*Customers).revokeInTheMiddle, 0, 12, true},
		{"change origins", 1, (*Customers).changeOrigins, 0, 0, true},
		{"change plan", 2, (*Customers).changePlan, 0, 0, true},
		{"change quota", 2, (*Customers).changeQuota, 0, 0, true},
		{"join agency", 1, (*Customers).join, 0, 0, true},
		{"leave agency", 1, (*Customers).leave, 0, 0, true},
		{"close account", 1, (*Customers).closeAccount, 60, 0, true},
		{EraseAccount, 0, (*Customers).eraseAccount, 0, 0, true},
	}
}

// command sends a command on the act's account as whoever the act picks: an operator, or the owner of a token for it.
func (c *Customers) command(ctx context.Context, act actDetails, command model.AccountCommand, endpoint string, m message) Answer {
	return c.sendOnce(ctx, c.commandOperation(act, command, endpoint), m)
}

// commandAgain is command for commands that may be sent again.
func (c *Customers) commandAgain(ctx context.Context, act actDetails, command model.AccountCommand, endpoint string, m message) Answer {
	return c.send(ctx, c.commandOperation(act, command, endpoint), m)
}

func (c *Customers) commandOperation(act actDetails, command model.AccountCommand, endpoint string) model.Operation {
	op := act.operation(act.Account)
	op.OnAccount, op.Endpoint = command, endpoint
	if act.By != "" {
		op.Token = act.By
	}
	return op
}

func (act actDetails) accountPath() string { return "/accounts/" + act.Account }

// open opens the act's account with its terms.
func (c *Customers) open(ctx context.Context, act actDetails, t terms) {
	command := model.OpenAccount{ID: act.Account, Name: accountName(act.Account), Plan: t.plan, Quota: t.quota}
	body := map[string]any{"id": act.Account, "nom": command.Name, "plan": t.plan}
	if t.quota > 0 {
		body["quota"] = t.quota
	}
	if t.agency >= 0 {
		command.Agency = accountID(t.agency)
		command.Anchor = c.Model.Anchor(command.Agency)
		body["agence_de"] = command.Agency
	} else {
		command.Anchor = model.Day(c.world.Wall(act.Instance).AddDate(0, 0, -t.age))
		body["debut_periode"] = command.Anchor
	}
	c.commandAgain(ctx, act, command, "POST /accounts", message{method: "POST", path: "/accounts", body: body})
}

// accountName returns the name of an account, which is personal data.
func accountName(account string) string { return "Mairie de " + account }

// becomeAgency activates the agency mode of an account.
func (c *Customers) becomeAgency(ctx context.Context, act actDetails) {
	c.commandAgain(ctx, act, model.BecomeAgency{}, "POST /accounts/{id}:agency", message{method: "POST",
		path: act.accountPath() + ":agency", body: map[string]any{}})
}

// as lets the account's customer, its agency, or an operator play an act, as the act picks.
func (c *Customers) as(ctx context.Context, act actDetails, play func(actDetails)) {
	switch agency := c.Model.Agency(act.Account); {
	case act.Pick%5 == 0:
		act.By = c.token(ctx, act, "customer", act.Account)
	case act.Pick%5 < 3 && agency != "":
		act.By = c.token(ctx, act, "agency", agency)
	}
	play(act)
}

// issueKey issues a key. It is not sent again: a second key would have the same label.
func (c *Customers) issueKey(ctx context.Context, act actDetails, kind string) {
	body := map[string]any{"kind": kind, "label": act.Label}
	var origins []string
	if kind == "publishable" {
		origins = []string{originOf(act.Label, false)}
		body["origins"] = origins
	}
	c.command(ctx, act, model.IssueKey{Kind: kind, Label: act.Label, Origins: origins}, "POST /accounts/{id}/keys",
		message{method: "POST", path: act.accountPath() + "/keys", body: body})
}

// pickKey returns a key of the act's account.
func (c *Customers) pickKey(act actDetails, kind string) (model.Secret, bool) {
	all := c.keys(act.Account, kind)
	if len(all) == 0 {
		return model.Secret{}, false
	}
	return all[act.Pick%len(all)], true
}

// revoke revokes a key.
func (c *Customers) revoke(ctx context.Context, act actDetails, s model.Secret) {
	c.commandAgain(ctx, act, model.RevokeKey{Label: s.Label}, "POST /accounts/{id}/keys/{key}:revoke",
		message{method: "POST", path: act.accountPath() + "/keys/" + s.ID + ":revoke", body: map[string]string{"reason": act.Label}})
}

func (c *Customers) revokeKey(ctx context.Context, act actDetails) {
	kind := "secret"
	if act.Pick%3 == 0 {
		kind = "publishable"
	}
	if s, ok := c.pickKey(act, kind); ok {
		c.as(ctx, act, func(act actDetails) { c.revoke(ctx, act, s) })
	}
}

// revokeInTheMiddle revokes the newest key while requests with it are made on all instances, and keeps using it for three seconds.
func (c *Customers) revokeInTheMiddle(ctx context.Context, act actDetails) {
	all := c.keys(act.Account, "secret")
	if len(all) == 0 {
		return
	}
	s := all[len(all)-1]
	c.atOnce(ctx, act, func(i int, act actDetails) {
		if i == 1 {
			c.revoke(ctx, act, s)
			return
		}
		for range 4 {
			op := act.operation(act.Account)
			op.Key, op.Service, op.Endpoint, op.Weight = s.Label, model.Addresses, "GET /me", 1
			c.sendOnce(ctx, op, message{method: "GET", path: "/me"})
			time.Sleep(700 * time.Millisecond)
			act.Instance = (act.Instance + 1) % c.world.Instances()
		}
	})
}

func (c *Customers) changeOrigins(ctx context.Context, act actDetails) {
	s, ok := c.pickKey(act, "publishable")
	if !ok {
		return
	}
	origins := []string{originOf(s.Label, act.Pick%2 == 0)}
	c.as(ctx, act, func(act actDetails) {
		c.commandAgain(ctx, act, model.ChangeOrigins{Label: s.Label, Origins: origins}, "PUT /accounts/{id}/keys/{key}/origins",
			message{method: "PUT", path: act.accountPath() + "/keys/" + s.ID + "/origins", body: map[string]any{"origins": origins}})
	})
}

// changePlan gives an account another plan, with that plan's quota. Agencies and their sub-clients keep theirs.
func (c *Customers) changePlan(ctx context.Context, act actDetails) {
	if c.Model.PaysWithOthers(act.Account) {
		return
	}
	c.commandAgain(ctx, act, model.ChangePlan{Plan: act.Plan}, "POST /accounts/{id}:plan",
		message{method: "POST", path: act.accountPath() + ":plan", body: map[string]any{"plan": act.Plan}})
}

// changeQuota gives an account another quota on its plan, as an operator or as the agency of a sub-client.
func (c *Customers) changeQuota(ctx context.Context, act actDetails) {
	plan, agency := c.Model.Plan(act.Account), c.Model.Agency(act.Account)
	if plan == "" {
		return
	}
	if agency != "" && act.Pick%2 == 0 {
		act.By = c.token(ctx, act, "agency", agency)
	}
	c.commandAgain(ctx, act, model.ChangePlan{Plan: plan, Quota: act.Quota, ByAgency: act.By != ""}, "POST /accounts/{id}:plan",
		message{method: "POST", path: act.accountPath() + ":plan", body: map[string]any{"plan": plan, "quota": act.Quota}})
}

func (c *Customers) join(ctx context.Context, act actDetails) {
	agency := accountID(act.Pick % agencyCount)
	if agency == act.Account {
		return
	}
	c.commandAgain(ctx, act, model.JoinAgency{Agency: agency, Plan: c.Model.Plan(agency), Anchor: c.Model.Anchor(agency)},
		"POST /accounts/{id}:agency",
		message{method: "POST", path: act.accountPath() + ":agency", body: map[string]any{"agence_de": agency}})
}

func (c *Customers) leave(ctx context.Context, act actDetails) {
	if agency := c.Model.Agency(act.Account); agency != "" && act.Pick%4 == 0 {
		act.By = c.token(ctx, act, "agency", agency)
	}
	c.commandAgain(ctx, act, model.LeaveAgency{ByAgency: act.By != ""}, "POST /accounts/{id}:agency",
		message{method: "POST", path: act.accountPath() + ":agency", body: map[string]any{"agence_de": nil}})
}

// closeAccount now and then closes an account, and then erases it. Agencies stay.
func (c *Customers) closeAccount(ctx context.Context, act actDetails) {
	if act.Size > 10 || isAgency(act.Account) {
		return
	}
	c.commandAgain(ctx, act, model.CloseAccount{}, "POST /accounts/{id}:close", message{method: "POST",
		path: act.accountPath() + ":close", body: act.confirmation()})
	if act.Pick%2 == 0 {
		c.erase(ctx, act)
	}
}

// EraseAccount is the kind of acts that close an account, whatever the answer, and then erase it. A script has them in addition to the acts
// that Generate draws: few, so that accounts stay, and most of them while something fails.
const EraseAccount = "erase account"

// eraseAccount closes an account and erases it. It retries the closing until it succeeds. Agencies stay.
func (c *Customers) eraseAccount(ctx context.Context, act actDetails) {
	if isAgency(act.Account) {
		return
	}
	closing := act
	closing.SendsOnce = false
	c.commandAgain(ctx, closing, model.CloseAccount{}, "POST /accounts/{id}:close", message{method: "POST",
		path: act.accountPath() + ":close", body: act.confirmation()})
	c.erase(ctx, act)
}

func (c *Customers) erase(ctx context.Context, act actDetails) {
	c.commandAgain(ctx, act, model.EraseAccount{}, "POST /accounts/{id}:erase", message{method: "POST",
		path: act.accountPath() + ":erase", body: act.confirmation()})
}

// confirmation returns the body of a command that cannot be undone.
func (act actDetails) confirmation() map[string]string {
	return map[string]string{"id": act.Account, "reason": act.Label}
}

// isAgency reports whether an account is one of the agencies.
func isAgency(account string) bool { return account <= accountID(agencyCount-1) }
