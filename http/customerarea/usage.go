package customerarea

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"lieudit/commands/usage"
	"lieudit/http/answer"
	"lieudit/http/csvfile"
	"lieudit/http/problem"
	"lieudit/queries/account"
	usagequeries "lieudit/queries/usage"
	"lieudit/schemas/body"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

func (h *handler) showUsage(r *http.Request, c call, in body.UsageQuery) (response, error) {
	owner, err := h.loadAccount(r, c.account())
	if err != nil {
		return response{}, err
	}
	q := buildUsageQuery(owner, in, h.Now())
	h.WaitForUsage(r.Context())
	u, err := h.UsageQueries.SummarizeAccount(r.Context(), q)
	if err != nil {
		return response{}, err
	}
	if u.Next == (plan.Date{}) { // nothing was counted in it
		period := plan.PeriodAt(owner.Anchor, q.First.Start())
		if period.First != q.First {
			return response{}, unknownPeriod(in)
		}
		u.Next = period.Next
	}
	return okResponse(toUsage(q, u))
}

func buildUsageQuery(owner body.Account, in body.UsageQuery, now time.Time) usagequeries.Query {
	q := usagequeries.Query{Account: owner.ID, Contract: owner.ID, Quota: owner.Quota, First: in.Period}
	if owner.Agency != "" {
		q.Contract = owner.Agency
	}
	if in.Period == (plan.Date{}) {
		q.First = plan.PeriodAt(owner.Anchor, now).First
	}
	for _, by := range in.GroupBy {
		q.GroupBy = append(q.GroupBy, usagequeries.Dimension(by))
	}
	if in.GroupBy == nil {
		q.GroupBy = []usagequeries.Dimension{usagequeries.ByKey, usagequeries.ByEndpoint, usagequeries.ByDay}
	}
	return q
}

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

func unknownPeriod(in body.UsageQuery) error {
	return problem.Violations(problem.Violation{
		Type: "value_error", Loc: []any{"query", "period"}, Msg: "Value error, no period of the account begins on that day",
		Input: map[string]any{"period": in.Period},
	})
}

func (h *handler) adjustUsage(r *http.Request, c call, in body.AdjustUsage) (response, error) {
	if in.Account == "" {
		in.Account = in.Contract
	}
	done, err := h.UsageMeter.AdjustPeriod(r.Context(), c.metadata(in.Reason), usage.Adjustment{
		Contract: in.Contract, First: in.Period, Requests: in.Requests,
		Line: ledger.LineKey{Day: in.Day, Account: in.Account, Key: in.Key, Endpoint: in.Endpoint},
	})
	if err != nil {
		return response{}, err
	}
	h.WaitForUsage(r.Context())
	return okResponse(body.BilledLine{
		Account: in.Account, Contract: in.Contract, Period: in.Period.String(), Day: in.Day.String(), Key: in.Key, Endpoint: in.Endpoint,
		Requests: done.Requests,
	})
}

// loadLastUsed is when keys of a list were used last.
func (h *handler) loadLastUsed(ctx context.Context, listed []account.Key) (map[string]time.Time, error) {
	ids := make([]string, len(listed))
	for i, k := range listed {
		ids[i] = k.ID
	}
	return h.UsageQueries.LastUsed(ctx, ids)
}

// exportUsage answers with all lines of an invoice as they are read: a page of them is held at a time.
func (h *handler) exportUsage(r *http.Request, _ call, in body.ExportQuery) (response, error) {
	h.WaitForUsage(r.Context())
	f := chooseFormat(in, r.Header)
	return response{stream: func(ctx context.Context, w http.ResponseWriter) error {
		return h.streamLines(ctx, w, f, h.UsageQueries.ExportLines(ctx, in.Period))
	}}, nil
}

// streamLines fails when the first line cannot be had. What fails later breaks the answer off.
func (h *handler) streamLines(ctx context.Context, w http.ResponseWriter, f exportFormat, all iter.Seq2[usagequeries.InvoiceLine, error]) error {
	next, stop := iter.Pull2(all)
	defer stop()
	line, err, more := next()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", f.mediaType)
	w.WriteHeader(http.StatusOK)
	out := f.newWriter(w)
	for more && err == nil {
		if err = out.writeLine(toBilledLine(line)); err == nil {
			line, err, more = next()
		}
	}
	if err == nil {
		err = out.finish()
	}
	if err != nil {
		if ctx.Err() == nil { // else nobody waits for the rest
			h.Log.Error("export broken off", "error", err)
		}
		answer.AbortResponse(w)
	}
	return nil
}

func toBilledLine(b usagequeries.InvoiceLine) body.BilledLine {
	return body.BilledLine{
		Account: b.Account, Contract: b.Contract, Period: b.Period, Day: b.Day, Key: b.Key, Endpoint: b.Endpoint, Requests: b.Requests,
	}
}

// exportFormat is a way to write lines.
type exportFormat struct {
	mediaType string
	newWriter func(io.Writer) lineWriter
}

// lineWriter are being written.
type lineWriter interface {
	writeLine(body.BilledLine) error
	finish() error
}

func chooseFormat(in body.ExportQuery, h http.Header) exportFormat {
	switch in.Format {
	case "csv":
		dialect := csvfile.PreferredDialect(h)
		switch in.CSVDialect {
		case "standard":
			dialect = csvfile.RFC4180
		case "excel":
			dialect = csvfile.FrenchExcel
		}
		return exportFormat{"text/csv; charset=utf-8", func(w io.Writer) lineWriter { return newCSVLineWriter(dialect, w) }}
	case "ndjson":
		return exportFormat{"application/x-ndjson", func(w io.Writer) lineWriter { return &jsonLineWriter{out: w} }}
	}
	return exportFormat{"application/json", func(w io.Writer) lineWriter {
		return &jsonLineWriter{out: w, prefix: `{"status":"OK","message":"","results":[`, separator: ",", suffix: "]}\n"}
	}}
}

type csvLineWriter struct{ out *csvfile.SafeWriter }

func newCSVLineWriter(f csvfile.Dialect, out io.Writer) csvLineWriter {
	w := f.NewSafeWriter(out)
	w.WriteRow([]string{"compte", "contrat", "periode", "jour", "cle", "endpoint"}, "requetes") // should it fail, so will Flush
	return csvLineWriter{w}
}

func (l csvLineWriter) writeLine(b body.BilledLine) error {
	return l.out.WriteRow([]string{b.Account, b.Contract, b.Period, b.Day, b.Key, b.Endpoint}, strconv.FormatInt(b.Requests, 10))
}

func (l csvLineWriter) finish() error { return l.out.Flush() }

// jsonLineWriter are objects, one a line, with what is before the first, between two and after the last.
type jsonLineWriter struct {
	out                       io.Writer
	prefix, separator, suffix string
	count                     int
}

func (l *jsonLineWriter) writeLine(b body.BilledLine) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	lead := l.separator
	if l.count == 0 {
		lead = l.prefix
	}
	l.count++
	_, err = io.WriteString(l.out, lead+string(text)+"\n")
	return err
}

func (l *jsonLineWriter) finish() error {
	text := l.suffix
	if l.count == 0 {
		text = l.prefix + l.suffix
	}
	_, err := io.WriteString(l.out, text)
	return err
}
