package customers

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"lieudit/cmd/bench/model"
)

// listEverywhere reads all pages of a list on every instance, with a token. All must give the same.
func (c *Customers) listEverywhere(ctx context.Context, d actDetails, token, endpoint, path string) (rows []json.RawMessage, ok bool) {
	for i := range c.world.Instances() {
		d.Instance = i
		on, ok := c.list(ctx, d, token, endpoint, path)
		if !ok {
			return nil, false
		}
		if i > 0 && !slices.EqualFunc(rows, on, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			c.world.Report(model.InstancesAgree, "%s: instance 0 lists %s, instance %d %s", path, rows, i, on)
		}
		if i == 0 {
			rows = on
		}
	}
	return rows, true
}

// list reads all pages of a list.
func (c *Customers) list(ctx context.Context, d actDetails, token, endpoint, path string) (rows []json.RawMessage, ok bool) {
	for cursor := ""; ; {
		op := d.operation("")
		op.Token, op.Endpoint = token, endpoint
		a := c.sendOnce(ctx, op, message{method: "GET", path: path + cursor})
		page, ok := decode[struct {
			Results []json.RawMessage
			Cursor  string `json:"curseur"`
		}](a)
		if !ok {
			c.world.Report(model.EveryAccountAnswers, "instance %d, %s: %d %s", d.Instance, path, a.Status, a.Body)
			return nil, false
		}
		if rows = append(rows, page.Results...); page.Cursor == "" {
			return rows, true
		}
		cursor = "&curseur=" + pathEscape(page.Cursor)
	}
}

// checkLists checks the lists of the customer area: the accounts, as an operator and as each agency, and the tokens.
func (c *Customers) checkLists(ctx context.Context) {
	readers := map[string]string{model.Operator: ""} // the agency that reads, by token
	for i := range agencyCount {
		agency := accountID(i)
		if !c.Model.IsAgency(agency) || c.Model.IsUnreadable(agency) {
			continue
		}
		isNew := c.Model.FindToken("agency", agency) == ""
		if token := c.token(ctx, actDetails{Account: agency, Label: "quiet"}, "agency", agency); token != "" {
			readers[token] = agency
		}
		if isNew {
			time.Sleep(knownEverywhere)
		}
	}
	for token, agency := range readers {
		if rows, ok := c.listEverywhere(ctx, actDetails{}, token, "GET /accounts", "/accounts?limit=7"); ok {
			if c.Model.CheckAccountList(agency, rows, c.world.Wall(0)); agency == "" {
				c.compareAccounts(ctx, rows)
			}
		}
	}
	if rows, ok := c.listEverywhere(ctx, actDetails{}, model.Operator, "GET /tokens", "/tokens?limit=5"); ok {
		c.Model.CheckTokenList(rows)
	}
}

// compareAccounts compares the accounts of a list, in every field, with what their own pages show.
func (c *Customers) compareAccounts(ctx context.Context, rows []json.RawMessage) {
	for _, row := range rows {
		listed := map[string]any{}
		_ = json.Unmarshal(row, &listed)
		d := actDetails{Account: fmt.Sprint(listed["id"])}
		if c.Model.IsUnreadable(d.Account) {
			continue
		}
		op := d.operation(d.Account)
		op.Endpoint = "GET /accounts/{id}"
		alone, _ := decode[map[string]any](c.sendOnce(ctx, op, message{method: "GET", path: d.accountPath()}))
		maps.DeleteFunc(alone, func(name string, _ any) bool { return name == "status" || name == "message" })
		if fmt.Sprint(listed) != fmt.Sprint(alone) {
			c.world.Report(model.ListsShowIt, "%s is listed as %v and shown as %v", d.Account, listed, alone)
		}
	}
}

// checkExports compares billing's exports in other formats, and of one period, with all that is billed.
func (c *Customers) checkExports(ctx context.Context, billed []model.BilledLine) {
	for i, form := range []string{"csv", "ndjson"} {
		a := c.export(ctx, i, "format="+form)
		if got, err := parseExport(form, a); err != nil || !slices.Equal(got, billed) {
			c.world.Report(model.ExportsAgree, "as %s: %d %s (%v), want %+v", form, a.Status, a.Body, err, billed)
		}
	}
	periods := map[string][]model.BilledLine{}
	for _, b := range billed {
		periods[b.Period] = append(periods[b.Period], b)
	}
	if all := slices.Sorted(maps.Keys(periods)); len(all) > 0 {
		period := all[len(billed)%len(all)] // a different one each
		want := periods[period]
		a := c.export(ctx, len(want)%c.world.Instances(), "format=ndjson&period="+period)
		if got, err := parseExport("ndjson", a); err != nil || !slices.Equal(got, want) {
			c.world.Report(model.ExportsAgree, "period %s: %d %s (%v), want %+v", period, a.Status, a.Body, err, want)
		}
	}
}

func (c *Customers) export(ctx context.Context, instance int, query string) Answer {
	op := actDetails{Instance: instance}.operation("")
	op.Endpoint = "GET /usage"
	return c.sendOnce(ctx, op, message{method: "GET", path: "/usage?" + query})
}

// parseExport reads the lines of an export that is not JSON.
func parseExport(form string, a Answer) (lines []model.BilledLine, err error) {
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("status %d", a.Status)
	}
	if form == "ndjson" {
		for text := range bytes.Lines(a.Body) {
			var b model.BilledLine
			if err := json.Unmarshal(text, &b); err != nil {
				return nil, err
			}
			lines = append(lines, b)
		}
		return lines, nil
	}
	rows, err := csv.NewReader(bytes.NewReader(a.Body)).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("no header: %w", err)
	}
	if header := strings.Join(rows[0], ","); header != "compte,contrat,periode,jour,cle,endpoint,requetes,etat" {
		return nil, fmt.Errorf("header %s", header)
	}
	for _, row := range rows[1:] {
		n, err := strconv.ParseInt(row[6], 10, 64)
		if err != nil {
			return nil, err
		}
		if !slices.Contains([]string{"en_cours", "a_clore", "close"}, row[7]) { // the state depends on the instance's clock
			return nil, fmt.Errorf("state %s", row[7])
		}
		lines = append(lines, model.BilledLine{Account: row[0], Contract: row[1], Period: row[2], Day: row[3], Key: row[4], Endpoint: row[5], Requests: n})
	}
	return lines, nil
}

// checkPeriods compares the usage shown for a named period with what is billed: one period of each account, with a breakdown by one thing.
func (c *Customers) checkPeriods(ctx context.Context, billed []model.BilledLine) {
	named := map[string]string{} // the last period of each account
	for _, b := range billed {
		if c.Model.Contract(b.Account, c.world.Wall(0)) == b.Contract && !c.Model.IsUnreadable(b.Account) && !c.Model.IsUnreadable(b.Contract) {
			named[b.Account] = b.Period
		}
	}
	for i, account := range slices.Sorted(maps.Keys(named)) {
		d, period := actDetails{Account: account}, named[account]
		by := []string{"key", "endpoint", "day"}[(i+len(billed))%3]
		shown := c.lookEverywhere(ctx, d, "GET /accounts/{id}/usage", d.accountPath()+"/usage?period="+period+"&by="+by)
		want, total := map[string]int64{}, int64(0)
		for _, b := range billed {
			if b.Account == account && b.Period == period {
				want[map[string]string{"key": b.Key, "endpoint": b.Endpoint, "day": b.Day}[by]] += b.Requests
				total += b.Requests
			}
		}
		var usage struct {
			Period string `json:"periode"`
			Total  int64  `json:"total"`
			Lines  []struct {
				Day      string `json:"jour"`
				Key      string `json:"cle"`
				Endpoint string `json:"endpoint"`
				Requests int64  `json:"requetes"`
			} `json:"lignes"`
		}
		isRead, got := shown.read(&usage), map[string]int64{}
		for _, l := range usage.Lines {
			got[l.Day+l.Key+l.Endpoint] += l.Requests
		}
		if !isRead || usage.Period != period || usage.Total != total || len(usage.Lines) != len(want) || !maps.Equal(got, want) {
			c.world.Report(model.UsageAgrees, "%s in the period %s by %s: %s, want %d, %v", account, period, by, shown.Body, total, want)
		}
	}
}
