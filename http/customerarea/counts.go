package customerarea

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"lieudit/http/budget"
	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/account"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
)

// listAccountPeriods lists the running period of an account, and those in which something was counted.
func (h *handler) listAccountPeriods(ctx context.Context, c call, _ body.Empty) (kit.Response, error) {
	owner, err := h.loadUnnamedAccount(ctx, c.Vars["id"])
	if err != nil {
		return kit.Response{}, err
	}
	h.usage.Wait(ctx)
	now := h.Now()
	// The period of the opening may have begun a month before, and one that a clock ahead opened may begin a month from now.
	from, to := plan.DateOf(owner.Created.AddDate(0, 0, -31)), plan.DateOf(now.AddDate(0, 0, 31))
	found, err := h.usage.Queries.AccountPeriods(ctx, owner.ID, from, to)
	if err != nil {
		return kit.Response{}, err
	}
	shown := body.UsagePeriods{Envelope: body.OKEnvelope, Results: []body.UsagePeriod{}}
	running, hasRunning := plan.PeriodAt(owner.Anchor, now), false
	for _, p := range found {
		hasRunning = hasRunning || p.First == running.First
		if p.Next == (plan.Date{}) { // nothing is known of it but its lines
			p.Next = plan.PeriodAt(p.First, p.First.Start()).Next
		}
		shown.Results = append(shown.Results, h.toPeriod(owner.ID, p))
	}
	if !hasRunning {
		empty := usagequeries.AccountPeriod{Contract: owner.ID, First: running.First, Next: running.Next}
		if owner.Agency != "" {
			empty.Contract = owner.Agency
		}
		shown.Results = append([]body.UsagePeriod{h.toPeriod(owner.ID, empty)}, shown.Results...)
	}
	return kit.OK(shown)
}

func (h *handler) toPeriod(accountID string, p usagequeries.AccountPeriod) body.UsagePeriod {
	shown := body.UsagePeriod{
		Period: p.First, Interval: body.Interval{Start: p.First.Start(), End: p.Next.Start()}, Closed: p.Closed,
		State: body.PeriodStateAt(h.Now(), p.Next.Start(), !p.Closed.IsZero()),
	}
	if p.Contract != accountID {
		shown.Agency = p.Contract
	}
	return shown
}

// listCounts lists what the lines of an account are made of. The cursor is how many entries were sent: entries only come after
// those there are, and where an entry lies on the log would tell an account about others that share its contract. So the log is read
// from the first of them for each page; the answer is sent meanwhile.
func (h *handler) listCounts(ctx context.Context, c call, in body.UsageCountsQuery) (kit.Response, error) {
	owner, err := h.loadUnnamedAccount(ctx, c.Vars["id"])
	if err != nil {
		return kit.Response{}, err
	}
	q, err := buildUsageQuery(owner, body.UsageQuery{Period: in.Period}, h.Now())
	if err != nil {
		return kit.Response{}, err
	}
	if _, err := h.loadUsage(ctx, c, body.UsageQuery{Period: in.Period, GroupBy: []string{}}); err != nil { // it is a period of the account
		return kit.Response{}, err
	}
	skip := 0
	if in.Cursor != "" {
		text, isOurs := strings.CutPrefix(in.Cursor, cursorPrefix)
		if skip, err = strconv.Atoi(text); !isOurs || err != nil || skip < 1 {
			return kit.Response{}, problem.InvalidCursor()
		}
	}
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	return kit.Response{Stream: func(ctx context.Context, w http.ResponseWriter) error {
		counts := h.usage.Counts.Counts(ctx, usagequeries.CountQuery{
			Account: owner.ID, Contract: q.Contract, First: q.First, Day: in.Day, Key: in.Key, Endpoint: in.Endpoint,
		})
		return h.sendCounts(ctx, w, c, keepKind(counts, in.Kind), skip, in.Limit)
	}}, nil
}

// kinds are the kinds of entries.
var kinds = map[usagequeries.CountKind]body.CountKind{
	usagequeries.CountTicked: body.CountTicked, usagequeries.CountRefunded: body.CountRefunded, usagequeries.CountAdjusted: body.CountAdjusted,
}

// keepKind yields the entries of a kind, or all of them for "".
func keepKind(counts iter.Seq2[usagequeries.Count, error], kind string) iter.Seq2[usagequeries.Count, error] {
	return func(yield func(usagequeries.Count, error) bool) {
		for c, err := range counts {
			if isKept := err != nil || kind == "" || string(kinds[c.Kind]) == kind; isKept && !yield(c, err) {
				return
			}
		}
	}
}

// cursorPrefix is what a cursor of entries begins with; the number of entries that were sent follows.
const cursorPrefix = "apres-"

// countsAtOnce is how many entries are encoded at once.
const countsAtOnce = 100

// sendCounts sends a page of entries.
func (h *handler) sendCounts(ctx context.Context, w http.ResponseWriter, c call, counts iter.Seq2[usagequeries.Count, error], skip, limit int) error {
	next, stop := iter.Pull2(counts)
	defer stop()
	isStaff := c.Principal.Role == grant.RoleOperator || c.Principal.Role == grant.RoleAuditor
	shown, sent, skipped := body.UsageCounts{Envelope: body.OKEnvelope, Results: []body.UsageCount{}}, 0, 0
	l := kit.List[body.UsageCount]{Log: h.Log, Member: "results", Body: func() any { return shown }}
	l.Read = takeTurns(h, c.Principal, func(context.Context) (chunk []body.UsageCount, more bool, err error) {
		for len(chunk) < countsAtOnce {
			count, err, ok := next()
			switch {
			case err != nil || !ok:
				return chunk, false, err
			case skipped < skip:
				skipped++
				continue
			case sent == limit:
				shown.Cursor = cursorPrefix + strconv.Itoa(skip+limit)
				return chunk, false, nil
			}
			sent++
			chunk = append(chunk, toCount(count, isStaff))
		}
		return chunk, true, nil
	})
	answer, err := l.Respond(ctx)
	if err != nil {
		return err
	}
	return answer.Write(ctx, w)
}

func toCount(c usagequeries.Count, isStaff bool) body.UsageCount {
	shown := body.UsageCount{Recorded: c.Recorded, Kind: kinds[c.Kind], Day: c.Day, Key: c.Key, Endpoint: c.Endpoint, Requests: c.Requests, Reason: c.Reason}
	if isStaff {
		shown.Position = int64(c.Position)
	}
	return shown
}

// exportAccountUsage answers with the lines of an account as CSV. Keys have their labels next to their ids.
func (h *handler) exportAccountUsage(ctx context.Context, c call, u body.Usage, d csvfile.Dialect) (kit.Response, error) {
	labels, err := h.loadLabels(ctx, c.Vars["id"], u.Lines)
	if err != nil {
		return kit.Response{}, err
	}
	contract := u.Agency
	if contract == "" {
		contract = c.Vars["id"]
	}
	return kit.Response{Stream: func(ctx context.Context, w http.ResponseWriter) error {
		w.Header().Set("Content-Type", csvfile.MediaType)
		w.WriteHeader(http.StatusOK)
		return writeUsageCSV(w, d, c.Vars["id"], contract, u, labels)
	}}, nil
}

func writeUsageCSV(w io.Writer, d csvfile.Dialect, accountID, contract string, u body.Usage, labels map[string]string) error {
	out := d.NewSafeWriter(w)
	out.WriteRow([]string{"compte", "contrat", "periode", "jour", "cle", "libelle", "endpoint"}, "requetes", "etat") // an error of it comes back from Flush
	for _, l := range u.Lines {
		day := ""
		if l.Day != (plan.Date{}) {
			day = l.Day.String()
		}
		out.WriteRow([]string{accountID, contract, u.Period.String(), day, l.Key, labels[l.Key], l.Endpoint}, strconv.FormatInt(l.Requests, 10), string(u.State))
	}
	return out.Flush()
}

// loadLabels returns the labels of an account's keys by their ids, if any line has a key.
func (h *handler) loadLabels(ctx context.Context, accountID string, lines []body.UsageLine) (map[string]string, error) {
	labels := map[string]string{}
	if len(lines) == 0 || lines[0].Key == "" {
		return labels, nil
	}
	for page := (account.Page{Limit: rowsAtOnce}); ; {
		found, next, err := h.accounts.Queries.ListKeys(ctx, accountID, page)
		if err != nil {
			return nil, err
		}
		for _, k := range found {
			labels[k.ID] = k.Label
		}
		if page.Cursor = next; next == "" {
			return labels, nil
		}
	}
}
