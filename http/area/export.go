package area

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"

	"lieudit/http/answer"
	"lieudit/http/sheet"
	"lieudit/queries/consumption"
	"lieudit/schemas/body"
)

// exportUsage answers with all lines of an invoice as they are read: a page of them is held at a time.
func (a *area) exportUsage(r *http.Request, _ call, in body.ExportQuery) (reply, error) {
	a.Tallied(r.Context())
	f := formatOf(in, r.Header)
	return reply{stream: func(ctx context.Context, w http.ResponseWriter) error {
		return a.sendLines(ctx, w, f, a.Consumption.Export(ctx, in.Period))
	}}, nil
}

// sendLines fails when the first line cannot be had. What fails later breaks the answer off.
func (a *area) sendLines(ctx context.Context, w http.ResponseWriter, f format, all iter.Seq2[consumption.Billed, error]) error {
	next, stop := iter.Pull2(all)
	defer stop()
	line, err, more := next()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", f.media)
	w.WriteHeader(http.StatusOK)
	out := f.begin(w)
	for more && err == nil {
		if err = out.line(billed(line)); err == nil {
			line, err, more = next()
		}
	}
	if err == nil {
		err = out.end()
	}
	if err != nil {
		if ctx.Err() == nil { // else nobody waits for the rest
			a.Log.Error("export broken off", "error", err)
		}
		answer.Cut(w)
	}
	return nil
}

func billed(b consumption.Billed) body.BilledLine {
	return body.BilledLine{
		Account: b.Account, Contract: b.Contract, Period: b.Period, Day: b.Day, Key: b.Key, Endpoint: b.Endpoint, Requests: b.Requests,
	}
}

// format is a way to write lines.
type format struct {
	media string
	begin func(io.Writer) lines
}

// lines are being written.
type lines interface {
	line(body.BilledLine) error
	end() error
}

func formatOf(in body.ExportQuery, h http.Header) format {
	switch in.Format {
	case "csv":
		form := sheet.Preferred(h)
		switch in.Sheet {
		case "standard":
			form = sheet.Standard
		case "excel":
			form = sheet.Excel
		}
		return format{"text/csv; charset=utf-8", func(w io.Writer) lines { return newSheet(form, w) }}
	case "ndjson":
		return format{"application/x-ndjson", func(w io.Writer) lines { return &jsonLines{out: w} }}
	}
	return format{"application/json", func(w io.Writer) lines {
		return &jsonLines{out: w, before: `{"status":"OK","message":"","results":[`, between: ",", after: "]}\n"}
	}}
}

type csvLines struct{ sheet *sheet.Writer }

func newSheet(f sheet.Form, out io.Writer) csvLines {
	w := f.New(out)
	w.Row([]string{"compte", "contrat", "periode", "jour", "cle", "endpoint"}, "requetes") // should it fail, so will Flush
	return csvLines{w}
}

func (l csvLines) line(b body.BilledLine) error {
	return l.sheet.Row([]string{b.Account, b.Contract, b.Period, b.Day, b.Key, b.Endpoint}, strconv.FormatInt(b.Requests, 10))
}

func (l csvLines) end() error { return l.sheet.Flush() }

// jsonLines are objects, one a line, with what is before the first, between two and after the last.
type jsonLines struct {
	out                    io.Writer
	before, between, after string
	lines                  int
}

func (l *jsonLines) line(b body.BilledLine) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	lead := l.between
	if l.lines == 0 {
		lead = l.before
	}
	l.lines++
	_, err = io.WriteString(l.out, lead+string(text)+"\n")
	return err
}

func (l *jsonLines) end() error {
	text := l.after
	if l.lines == 0 {
		text = l.before + l.after
	}
	_, err := io.WriteString(l.out, text)
	return err
}
