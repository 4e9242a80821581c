package customerarea

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/budget"
	"lieudit/http/csvfile"
	"lieudit/http/kit"
	"lieudit/http/problem"
	"lieudit/queries/account"
	usagequeries "lieudit/queries/usage"
	"lieudit/queries/usage/reconcile"
	"lieudit/schemas/body"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// Usage is what the customer area needs for requests that were counted. Every part is required.
type Usage struct {
	Meter      *usage.Meter
	Queries    *usagequeries.Reader
	Counts     *usagequeries.CountReader
	Reconciler *reconcile.Reconciler
	// Wait returns when the read model shows all that was counted by now, or when that takes too long.
	Wait func(context.Context)
}

// usageRequest is which lines of an account are shown, and in which dialect of CSV if not as JSON.
type usageRequest struct {
	body.UsageQuery
	dialect csvfile.Dialect
}

// showUsageEndpoint answers with the usage of an account, as JSON or CSV.
func (h *handler) showUsageEndpoint() kit.Endpoint[principal] {
	decoder := kit.NewDecoder[body.UsageQuery]()
	return kit.NewEndpoint(func(r *http.Request) (usageRequest, error) {
		in, err := decoder.DecodeQuery(r)
		return usageRequest{in, csvfile.ChooseDialect(in.CSVDialect, r.Header)}, err
	}, func(ctx context.Context, c call, in usageRequest) (kit.Response, error) {
		shown, err := h.loadUsage(ctx, c, in.UsageQuery)
		switch {
		case err != nil:
			return kit.Response{}, err
		case in.Format == "csv":
			return h.exportAccountUsage(ctx, c, shown, in.dialect)
		}
		return kit.OK(shown)
	})
}

// loadUsage is how many requests an account used in a period, all that was counted by now included. A period in which nothing
// was counted must still be one of the account's periods.
func (h *handler) loadUsage(ctx context.Context, c call, in body.UsageQuery) (body.Usage, error) {
	owner, err := h.loadUnnamedAccount(ctx, c.Vars["id"])
	if err != nil {
		return body.Usage{}, err
	}
	q, err := buildUsageQuery(owner, in, h.Now())
	if err != nil {
		return body.Usage{}, err
	}
	h.usage.Wait(ctx)
	lines, err := h.usage.Queries.CountLines(ctx, q)
	if err == nil {
		err = c.Answer.Reserve(int64(lines) * usageLineBytes)
	}
	if err != nil {
		return body.Usage{}, err
	}
	u, err := h.usage.Queries.SummarizeAccount(ctx, q)
	if err != nil {
		return body.Usage{}, err
	}
	wasOpened := u.Next != (plan.Date{})
	if !wasOpened { // nothing was counted in the period
		period := plan.PeriodAt(owner.Anchor, q.First.Start())
		if period.First != q.First {
			return body.Usage{}, unknownPeriod("query", "period")
		}
		u.Next = period.Next
	}
	shown, now := toUsage(q, u), h.Now()
	isOver := !u.Closed.IsZero() || !wasOpened && now.After(shown.End.Add(24*time.Hour)) // there is nothing to close
	shown.State = body.PeriodStateAt(now, shown.End, isOver)
	if c.Principal.Role != grant.RoleCustomer || shown.Agency == "" {
		shown.Position = u.Entries
	}
	return shown, nil
}

// usageLineBytes is what a line of usage takes in an answer that is built of it.
const usageLineBytes = 512

// buildUsageQuery is the query of the read model for a request. The contract is that of the account that pays: a sub-client is
// asked for under the contract of its agency. Without a period in the request it is the running one. Without a grouping the
// lines are as fine as they are counted: by key, endpoint and day.
func buildUsageQuery(owner body.Account, in body.UsageQuery, now time.Time) (usagequeries.Query, error) {
	q := usagequeries.Query{Account: owner.ID, Contract: owner.ID, Quota: owner.Quota, Day: in.Day, Key: in.Key, Endpoint: in.Endpoint}
	if owner.Agency != "" {
		q.Contract = owner.Agency
	}
	running := plan.PeriodAt(owner.Anchor, now).First
	if q.First = running; in.Period != "" {
		var err error
		if q.First, err = parsePeriod(owner, in.Period); err != nil {
			return q, unreadablePeriod("query", "period")
		}
	}
	q.IsRunning = q.First == running
	for _, by := range in.GroupBy {
		q.GroupBy = append(q.GroupBy, usagequeries.Dimension(by))
	}
	if in.GroupBy == nil {
		q.GroupBy = []usagequeries.Dimension{usagequeries.ByKey, usagequeries.ByEndpoint, usagequeries.ByDay}
	}
	return q, nil
}

// parsePeriod returns the first day of an account's period, which the text gives, or the month the period begins in.
func parsePeriod(owner body.Account, text string) (plan.Date, error) {
	if len(text) == len("2026-11") {
		p, err := plan.PeriodIn(owner.Anchor, text)
		return p.First, err
	}
	return plan.ParseDate(text)
}

// toUsage shows a summary. Agency is set for a sub-client, whose agency pays.
func toUsage(q usagequeries.Query, u usagequeries.Summary) body.Usage {
	shown := body.Usage{
		Period: q.First, Interval: body.Interval{Start: q.First.Start(), End: u.Next.Start()},
		Limit: u.Limit, Total: u.Total, Remaining: u.Remaining, Closed: u.Closed, Lines: make([]body.UsageLine, len(u.Lines)),
	}
	if u.Contract != q.Account {
		shown.Agency = u.Contract
	}
	for i, l := range u.Lines {
		shown.Lines[i] = body.UsageLine(l)
	}
	return shown
}

// unreadablePeriod refuses a text that parsePeriod cannot read.
func unreadablePeriod(part, name string) error {
	return problem.BrokenRule(part, name, "value_error", "Value error, a period is named by its first day (2026-11-21) or by the month it begins in (2026-11)")
}

// unknownPeriod refuses a day on which no period of the account begins.
func unknownPeriod(part, name string) error {
	return problem.BrokenRule(part, name, "value_error", "Value error, no period of the account begins on that day")
}

// adjustUsage corrects a line of a closed period, for good. The account is the one that pays where the request names none. The
// answer is the line as it is then.
func (h *handler) adjustUsage(ctx context.Context, c call, in body.AdjustUsage) (kit.Response, error) {
	if in.Account == "" {
		in.Account = in.Contract
	}
	owner, err := h.loadUnnamedAccount(ctx, in.Contract)
	if err != nil {
		return kit.Response{}, err
	}
	first, err := parsePeriod(owner, in.Period)
	if err != nil {
		return kit.Response{}, unreadablePeriod("body", "periode")
	}
	done, err := h.usage.Meter.AdjustPeriod(ctx, metadata(c, in.Reason), usage.Adjustment{
		Contract: in.Contract, First: first, Requests: in.Requests,
		Line: usagefold.LineKey{Day: in.Day, Account: in.Account, Key: in.Key, Endpoint: in.Endpoint},
	})
	if err != nil {
		return kit.Response{}, err
	}
	h.usage.Wait(ctx)
	return kit.OK(body.BilledLine{
		Account: in.Account, Contract: in.Contract, Period: first.String(), Day: in.Day.String(), Key: in.Key, Endpoint: in.Endpoint,
		Requests: done.Requests, State: body.PeriodClosed,
	})
}

// loadLastUsed is when each key of a list was used last, by the key's id. Keys that were never used are not in it.
func (h *handler) loadLastUsed(ctx context.Context, listed []account.Key) (map[string]time.Time, error) {
	ids := make([]string, len(listed))
	for i, k := range listed {
		ids[i] = k.ID
	}
	return h.usage.Queries.LastUsed(ctx, ids)
}

// reconcileUsage compares the usage on the log with the usage that the read model shows. That takes as long as reading the log
// takes, so it runs as a stream, which commandTimeout does not limit.
func (h *handler) reconcileUsage(_ context.Context, _ call, in body.ReconcileUsage) (kit.Response, error) {
	return kit.Response{Stream: func(ctx context.Context, w http.ResponseWriter) error {
		result, err := h.usage.Reconciler.Run(ctx, in.Period)
		if err != nil {
			return err
		}
		return kit.WriteJSON(w, http.StatusOK, result)
	}}, nil
}

// exportRequest is which lines of usage are exported, and how.
type exportRequest struct {
	period string
	format kit.Format[body.BilledLine]
}

// exportUsageEndpoint streams all lines of an invoice. One page of them is in memory at a time.
func (h *handler) exportUsageEndpoint() kit.Endpoint[principal] {
	decoder := kit.NewDecoder[body.ExportQuery]()
	return kit.NewEndpoint(func(r *http.Request) (exportRequest, error) {
		in, err := decoder.DecodeQuery(r)
		return exportRequest{in.Period, chooseFormat(in, r.Header)}, err
	}, h.exportUsage)
}

// exportUsage reads and sends the lines in the stream of the response, which commandTimeout does not limit.
func (h *handler) exportUsage(ctx context.Context, c call, in exportRequest) (kit.Response, error) {
	if err := c.Answer.Reserve(budget.StreamedAnswer); err != nil {
		return kit.Response{}, err
	}
	h.usage.Wait(ctx)
	return kit.Response{Stream: func(ctx context.Context, w http.ResponseWriter) error {
		file, err := kit.NewExport(in.format, h.readBilledLines(ctx, in.period))
		if err != nil {
			return err
		}
		file.Stream(ctx, w, h.Log)
		return nil
	}}, nil
}

// readBilledLines yields the lines of an export with the state of their periods by one clock reading: a period does not end in the
// middle of a file.
func (h *handler) readBilledLines(ctx context.Context, period string) iter.Seq2[body.BilledLine, error] {
	now := h.Now()
	return func(yield func(body.BilledLine, error) bool) {
		for b, err := range h.usage.Queries.ExportLines(ctx, period) {
			var line body.BilledLine
			if err == nil {
				line, err = toBilledLine(b, now)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func toBilledLine(b usagequeries.InvoiceLine, now time.Time) (body.BilledLine, error) {
	var end time.Time
	if b.Next != "" {
		next, err := plan.ParseDate(b.Next)
		if err != nil {
			return body.BilledLine{}, err
		}
		end = next.Start()
	}
	return body.BilledLine{
		Account: b.Account, Contract: b.Contract, Period: b.Period, Day: b.Day, Key: b.Key, Endpoint: b.Endpoint, Requests: b.Requests,
		State: body.PeriodStateAt(now, end, b.IsClosed),
	}, nil
}

// listPeriods lists the periods of all contracts, the last to begin first, with all that was counted by now. The cursor names the last
// period of a page.
func (h *handler) listPeriods(ctx context.Context, _ call, in body.PeriodsQuery) (kit.Response, error) {
	var after usagequeries.PeriodID
	if in.Cursor != "" {
		var ok bool
		if after.First, after.Contract, ok = strings.Cut(in.Cursor, "."); !ok {
			return kit.Response{}, problem.InvalidCursor()
		}
		if _, err := plan.ParseDate(after.First); err != nil {
			return kit.Response{}, problem.InvalidCursor()
		}
	}
	h.usage.Wait(ctx)
	found, more, err := h.usage.Queries.ListPeriods(ctx, in.Period, after, in.Limit)
	if err != nil {
		return kit.Response{}, err
	}
	now, shown := h.Now(), body.Periods{Envelope: body.OKEnvelope, Results: []body.Period{}}
	for _, p := range found {
		shown.Results = append(shown.Results, body.Period{
			Contract: p.Contract, Period: p.First, Interval: body.Interval{Start: p.First.Start(), End: p.Next.Start()},
			Limit: p.Limit, Requests: p.Requests, Closed: p.Closed, State: body.PeriodStateAt(now, p.Next.Start(), !p.Closed.IsZero()),
		})
	}
	if more {
		last := found[len(found)-1]
		shown.Cursor = last.First.String() + "." + last.Contract
	}
	return kit.OK(shown)
}

type lineWriter = kit.RowWriter[body.BilledLine]

// chooseFormat is the format that a request names; without one, the lines are the results of one JSON answer.
func chooseFormat(in body.ExportQuery, h http.Header) kit.Format[body.BilledLine] {
	encode := func(l body.BilledLine) ([]byte, error) { return kit.EncodeLine(l) }
	switch in.Format {
	case "csv":
		dialect := csvfile.ChooseDialect(in.CSVDialect, h)
		return kit.Format[body.BilledLine]{MediaType: csvfile.MediaType, NewWriter: func(w io.Writer) lineWriter { return newCSVLineWriter(dialect, w) }}
	case "ndjson":
		return kit.Format[body.BilledLine]{MediaType: "application/x-ndjson", NewWriter: func(w io.Writer) lineWriter {
			return &kit.JSONRows[body.BilledLine]{Out: w, Encode: encode}
		}}
	}
	return kit.Format[body.BilledLine]{MediaType: "application/json", NewWriter: func(w io.Writer) lineWriter {
		return &kit.JSONRows[body.BilledLine]{
			Out: w, Prefix: `{"status":"OK","message":"","results":[`, Separator: ",", Suffix: "]}\n", Encode: encode,
		}
	}}
}

// csvLineWriter writes the lines of an invoice as CSV for people: a spreadsheet takes no cell for a formula.
type csvLineWriter struct{ out *csvfile.SafeWriter }

func newCSVLineWriter(d csvfile.Dialect, out io.Writer) csvLineWriter {
	w := d.NewSafeWriter(out)
	w.WriteRow([]string{"compte", "contrat", "periode", "jour", "cle", "endpoint"}, "requetes", "etat") // an error of it comes back from Flush
	return csvLineWriter{w}
}

func (l csvLineWriter) WriteRow(b body.BilledLine) error {
	return l.out.WriteRow([]string{b.Account, b.Contract, b.Period, b.Day, b.Key, b.Endpoint}, strconv.FormatInt(b.Requests, 10), string(b.State))
}

func (l csvLineWriter) Finish() error { return l.out.Flush() }
