package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"lieudit/http/pages/assets"
	"lieudit/http/pages/i18n"
	"lieudit/schemas/grant"
)

//go:embed layout/*.html
var layoutFiles embed.FS

// parseTemplates parses the layout and the templates of a section, once for each language: the functions of a template know theirs.
func (s *Site) parseTemplates(section fs.FS) map[i18n.Lang]*template.Template {
	all := map[i18n.Lang]*template.Template{}
	for _, lang := range []i18n.Lang{i18n.French, i18n.English} {
		t := template.New("").Funcs(s.funcs(i18n.Printer{Lang: lang, Now: s.Now}))
		t = template.Must(t.ParseFS(layoutFiles, "layout/*.html"))
		if section != nil {
			t = template.Must(t.ParseFS(section, "*.html"))
		}
		all[lang] = t
	}
	return all
}

// funcs are the functions of templates for one language.
//
//	{{t "Clés" "Keys"}}, {{t "Clé %s" "Key %s" .Label}}   a phrase, and one with arguments
//	{{text .Title}}   a text that has both languages already
//	{{h "<b>%s</b> demandes" "<b>%s</b> requests" (num .N)}}   one with markup; the arguments are escaped
//	{{count .N "%s clé" "%s clés" "%s key" "%s keys"}}   a number with its noun
//	{{num .N}} {{pct .Share}} {{bytes .N}} {{date .T}} {{day .T}} {{datetime .T}} {{since .T}} {{until .T}} {{second .T}}
//	{{time .T}}   <time> with the instant, shown as since
//	{{icon "copy"}} {{asset "app.css"}} {{path "/comptes/%s/cles" .ID}}
//	{{template "notice" (dict "Kind" "warning" "Text" (t …))}}   several values for one template
func (s *Site) funcs(p i18n.Printer) template.FuncMap {
	return template.FuncMap{
		"t": p.T, "text": func(t i18n.Text) string { return p.Text(t) }, "h": p.H, "count": p.Count, "num": p.Number, "pct": p.Percent, "bytes": p.Bytes,
		"date": p.Date, "lastday": p.LastDay, "day": p.ShortDate, "datetime": p.DateTime, "since": p.Since, "until": p.Until, "time": p.Time, "second": p.Second,
		"icon": assets.Icon, "asset": s.assets.Path, "path": Path, "dict": dict,
		"lang":  func() string { return string(p.Lang) },
		"int64": func(n int) int64 { return int64(n) },
	}
}

// dict makes a map of pairs, so that a template can be called with several values.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: a name without a value")
	}
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// data is the dot of every template: the request, and the view with its data.
type data struct {
	*Request
	View
	Nav []NavEntry
}

// write sends a view.
func (s *Site) write(q *Request, v View) error {
	switch {
	case v.Stream != nil:
		return v.Stream(q.writer, q.Request)
	case v.Redirect != "":
		q.writer.Header().Set("Location", v.Redirect)
		q.writer.WriteHeader(http.StatusSeeOther)
		return nil
	}
	return s.writePage(q, v)
}

// writePage sends a page. It is rendered whole before anything is sent, so that a template that fails becomes an error page.
func (s *Site) writePage(q *Request, v View) error {
	d := data{Request: q, View: v}
	var content, whole bytes.Buffer
	if !v.IsFragment {
		d.Nav = q.navigation(v.Current)
	}
	if err := q.templates.ExecuteTemplate(&content, v.Template, d); err != nil {
		return fmt.Errorf("page %s: %w", v.Template, err)
	}
	if v.IsFragment {
		q.send(v.Status, content.Bytes())
		return nil
	}
	outer := struct {
		data
		Content template.HTML
	}{d, template.HTML(content.String())}
	if err := q.templates.ExecuteTemplate(&whole, "layout.html", outer); err != nil {
		return fmt.Errorf("layout of %s: %w", v.Template, err)
	}
	q.send(v.Status, whole.Bytes())
	return nil
}

// send sends a page or a part of one.
func (q *Request) send(status int, text []byte) {
	h := q.writer.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", string(q.Print.Lang))
	h.Set("Content-Length", strconv.Itoa(len(text)))
	if status == 0 {
		status = http.StatusOK
	}
	q.writer.WriteHeader(status)
	q.writer.Write(text) // a browser that went away is not an error of the service
}

// Instant is the clock reading that a page shows at its foot.
func (d data) Instant() time.Time { return d.Print.Now() }

// Here is the path of the page with its query, to return to.
func (d data) Here() string { return d.URL.RequestURI() }

// AccountName is the name of the account whose page it is.
func (d data) AccountName() string { return d.accountName }

// IsInvented reports whether the addresses that are served are invented.
func (d data) IsInvented() bool { return d.Site.IsInvented() }

// PagesURL is where people reach the pages.
func (d data) PagesURL() string { return d.Site.URL().String() }

// SeesAccounts reports whether the reader has a list of accounts to go back to.
func (d data) SeesAccounts() bool { return d.May(http.MethodGet, "/accounts") }

// RoleName is the role of whoever reads.
func (d data) RoleName() string { return RoleText(d.Principal.Role).In(d.Print.Lang) }

// Flash is what a form did that led to this page.
func (d data) Flash() string {
	return d.Site.flashes[d.URL.Query().Get("fait")].In(d.Print.Lang)
}

// RoleTitle is the name of a role.
func (d data) RoleTitle(role grant.Role) string { return RoleText(role).In(d.Print.Lang) }

// RoleText is the name of a role.
func RoleText(role grant.Role) i18n.Text {
	switch role {
	case grant.RoleOperator:
		return i18n.Text{FR: "Opérateur", EN: "Operator"}
	case grant.RoleCustomer:
		return i18n.Text{FR: "Client", EN: "Customer"}
	case grant.RoleAgency:
		return i18n.Text{FR: "Agence", EN: "Agency"}
	case grant.RoleBilling:
		return i18n.Text{FR: "Facturation", EN: "Billing"}
	case grant.RoleAuditor:
		return i18n.Text{FR: "Audit", EN: "Auditor"}
	}
	return i18n.Text{FR: string(role), EN: string(role)}
}
