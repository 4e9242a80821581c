package usage

import (
	"html"
	"html/template"
	"strconv"
	"strings"

	"lieudit/http/pages/page"
	"lieudit/schemas/plan"
)

// This file writes the numbers of the table. There are some hundreds of them, and a template takes several milliseconds for that.

// Cells writes the numbers of a day, each of which leads to the lines that it is the sum of.
func (r report) Cells(q *page.Request, of row) template.HTML {
	var b strings.Builder
	day := of.Day.String()
	path := ""
	if of.Total != 0 {
		path = r.RowPath(of.Day)
	}
	writeCell(&b, "j"+day, path, q.Print.Number(of.Total))
	for i, v := range of.Values {
		path := ""
		if v != 0 && r.Columns[i].ID != "" {
			path = r.CellPath(of.Day, r.Columns[i])
		}
		writeCell(&b, "j"+day+"-"+strconv.Itoa(i), path, q.Print.Number(v))
	}
	return template.HTML(b.String())
}

// Sums writes the numbers of all days.
func (r report) Sums(q *page.Request) template.HTML {
	var b strings.Builder
	writeCell(&b, "somme-totale", r.RowPath(plan.Date{}), q.Print.Number(r.Sum))
	for i, c := range r.Columns {
		path := ""
		if c.ID != "" {
			path = r.CellPath(plan.Date{}, c)
		}
		writeCell(&b, "somme-"+strconv.Itoa(i), path, q.Print.Number(c.Total))
	}
	return template.HTML(b.String())
}

// writeCell writes a number, with a link unless the path is "".
func writeCell(b *strings.Builder, id, path, number string) {
	if path == "" {
		b.WriteString(`<td class="num">` + html.EscapeString(number) + `</td>`)
		return
	}
	b.WriteString(`<td class="num"><a id="` + html.EscapeString(id) + `" href="` + html.EscapeString(path) + `">` + html.EscapeString(number) + `</a></td>`)
}
