package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strconv"
	"strings"
)

// Snippet is a request written in one language, to be copied and run with the key in an environment variable.
type Snippet struct{ Language, Code string }

// Server is where snippets send requests: its URL with the base path, and the variable that holds the key or the token.
type Server struct{ URL, KeyVariable string }

// Snippets are an example in curl, JavaScript, Python and Go. A publishable key's is in JavaScript for a page alone.
func Snippets(e Example, s Server) []Snippet {
	q := newSnippetRequest(e, s)
	if e.Request.Origin != "" {
		return []Snippet{{"JavaScript", q.browser()}}
	}
	return []Snippet{{"curl", q.curl()}, {"JavaScript", q.javaScript()}, {"Python", q.python()}, {"Go", q.golang()}}
}

// Curl is an example in curl, with more headers.
func Curl(e Example, headers [][2]string, s Server) string {
	q := newSnippetRequest(e, s)
	if e.Request.Origin != "" {
		headers = append([][2]string{{"Origin", e.Request.Origin}}, headers...)
	}
	line := q.curl()
	for _, h := range headers {
		line += " \\\n  -H " + shell(h[0]+": "+h[1])
	}
	return line
}

// pair is a parameter of a query, or a field of a form.
type pair struct{ name, value string }

// snippetRequest is a request as snippets write it.
type snippetRequest struct {
	method, url string // without the query
	variable    string
	isOpen      bool // needs no key
	query       []pair
	json        string // of the body
	fileName    string // of a form
	fields      []pair // of a form, besides its file
}

func newSnippetRequest(e Example, s Server) snippetRequest {
	q := snippetRequest{method: e.Request.Method, url: s.URL + e.Request.Path(), variable: s.KeyVariable, isOpen: e.Operation == "get_version" || e.Operation == "post_sessions"}
	for part := range strings.SplitSeq(e.Request.Query(), "&") {
		if name, value, _ := strings.Cut(part, "="); name != "" {
			if text, err := url.QueryUnescape(value); err == nil {
				value = text
			}
			q.query = append(q.query, pair{name, value})
		}
	}
	if mediaType, options, err := mime.ParseMediaType(e.Request.MediaType); err == nil && mediaType == "multipart/form-data" {
		q.readForm(e.Request.Body, options["boundary"])
		return q
	}
	q.json = IndentJSON(e.Request.Body)
	return q
}

// readForm reads the fields of a multipart form.
func (q *snippetRequest) readForm(text, boundary string) {
	for r := multipart.NewReader(strings.NewReader(text), boundary); ; {
		part, err := r.NextPart()
		if err != nil {
			return
		}
		if part.FileName() != "" {
			q.fileName = part.FileName()
			continue
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return
		}
		q.fields = append(q.fields, pair{part.FormName(), string(value)})
	}
}

// IndentJSON indents JSON; any other text stays.
func IndentJSON(text string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(text), "", "  ") != nil {
		return text
	}
	return out.String()
}

// shell quotes a text for a shell, in double quotes if it has single ones.
func shell(text string) string {
	if !strings.Contains(text, "'") {
		return "'" + text + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

func (q snippetRequest) curl() string {
	var b strings.Builder
	b.WriteString("curl ")
	switch {
	case len(q.query) > 0:
		b.WriteString("-G ")
	case q.method != "GET" && q.json == "" && q.fileName == "":
		fmt.Fprintf(&b, "-X %s ", q.method)
	case q.method != "GET" && q.method != "POST":
		fmt.Fprintf(&b, "-X %s ", q.method)
	}
	b.WriteString(shell(q.url))
	if !q.isOpen {
		fmt.Fprintf(&b, " \\\n  -H \"Authorization: Bearer $%s\"", q.variable)
	}
	for _, p := range q.query {
		fmt.Fprintf(&b, " \\\n  --data-urlencode %s", shell(p.name+"="+p.value))
	}
	if q.json != "" {
		fmt.Fprintf(&b, " \\\n  -H 'Content-Type: application/json' \\\n  -d %s", shell(q.json))
	}
	if q.fileName != "" {
		fmt.Fprintf(&b, " \\\n  -F data=@%s", q.fileName)
	}
	for _, p := range q.fields {
		fmt.Fprintf(&b, " \\\n  -F %s", shell(p.name+"="+p.value))
	}
	return b.String()
}

// quote is a text as a literal of JavaScript, Python and Go alike: that of JSON.
func quote(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err) // texts always encode
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// pairsOf writes pairs as a list of lists, or of what brackets are given, one a line.
func pairsOf(all []pair, open, close, indent string) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, "%s%s%s, %s%s,\n", indent, open, quote(p.name), quote(p.value), close)
	}
	return b.String()
}

func (q snippetRequest) javaScript() string {
	var b strings.Builder
	if q.fileName != "" {
		b.WriteString("import { openAsBlob } from \"node:fs\";\n\n")
	}
	fmt.Fprintf(&b, "const url = new URL(%s);\n", quote(q.url))
	if len(q.query) > 0 {
		fmt.Fprintf(&b, "url.search = new URLSearchParams([\n%s]);\n", pairsOf(q.query, "[", "]", "  "))
	}
	if q.fileName != "" {
		fmt.Fprintf(&b, "const form = new FormData();\nform.append(\"data\", await openAsBlob(%s), %[1]s);\n", quote(q.fileName))
		for _, p := range q.fields {
			fmt.Fprintf(&b, "form.append(%s, %s);\n", quote(p.name), quote(p.value))
		}
	}
	b.WriteString("const response = await fetch(url, {\n")
	if q.method != "GET" {
		fmt.Fprintf(&b, "  method: %s,\n", quote(q.method))
	}
	switch {
	case q.isOpen && q.json == "":
	case q.json != "":
		fmt.Fprintf(&b, "  headers: {\n    Authorization: `Bearer ${process.env.%s}`,\n    \"Content-Type\": \"application/json\",\n  },\n", q.variable)
		fmt.Fprintf(&b, "  body: JSON.stringify(%s),\n", indentBy(q.json, "  "))
	default:
		fmt.Fprintf(&b, "  headers: { Authorization: `Bearer ${process.env.%s}` },\n", q.variable)
	}
	if q.fileName != "" {
		b.WriteString("  body: form,\n")
	}
	b.WriteString("});\nif (!response.ok) throw new Error(`${response.status} ${await response.text()}`);\n")
	if q.fileName != "" {
		b.WriteString("console.log(await response.text());")
		return b.String()
	}
	b.WriteString("console.log(await response.json());")
	return b.String()
}

// browser is for a page, with a publishable key.
func (q snippetRequest) browser() string {
	var b strings.Builder
	fmt.Fprintf(&b, "const url = new URL(%s);\n", quote(q.url))
	if len(q.query) > 0 {
		fmt.Fprintf(&b, "url.search = new URLSearchParams([\n%s]);\n", pairsOf(q.query, "[", "]", "  "))
	}
	b.WriteString("const response = await fetch(url, { headers: { Authorization: \"Bearer ld_pk_…\" } });\n")
	b.WriteString("const answer = await response.json();\n")
	b.WriteString("if (!response.ok) console.error(answer.detail.code, answer.detail.message);\n")
	b.WriteString("else for (const site of answer.results ?? []) console.log(site.nom, site.distance);")
	return b.String()
}

// indentBy indents all lines of a text but the first.
func indentBy(text, indent string) string { return strings.ReplaceAll(text, "\n", "\n"+indent) }

func (q snippetRequest) python() string {
	var b strings.Builder
	b.WriteString("import os\nimport requests\n\n")
	b.WriteString("response = requests.request(\n")
	fmt.Fprintf(&b, "    %s,\n    %s,\n", quote(q.method), quote(q.url))
	if !q.isOpen {
		fmt.Fprintf(&b, "    headers={\"Authorization\": f\"Bearer {os.environ['%s']}\"},\n", q.variable)
	}
	if len(q.query) > 0 {
		fmt.Fprintf(&b, "    params=[\n%s    ],\n", pairsOf(q.query, "(", ")", "        "))
	}
	if q.json != "" {
		fmt.Fprintf(&b, "    json=%s,\n", indentBy(pythonJSON(q.json), "    "))
	}
	if q.fileName != "" {
		fmt.Fprintf(&b, "    files={\"data\": open(%s, \"rb\")},\n", quote(q.fileName))
	}
	if len(q.fields) > 0 {
		fmt.Fprintf(&b, "    data=[\n%s    ],\n", pairsOf(q.fields, "(", ")", "        "))
	}
	b.WriteString("    timeout=30,\n)\nresponse.raise_for_status()\n")
	if q.fileName != "" {
		b.WriteString("print(response.text)")
		return b.String()
	}
	b.WriteString("print(response.json())")
	return b.String()
}

// pythonJSON writes JSON with the words of Python for true, false and null.
func pythonJSON(text string) string {
	return strings.NewReplacer(": true", ": True", ": false", ": False", ": null", ": None").Replace(text)
}

func (q snippetRequest) golang() string {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	imports := []string{"io", "log", "net/http", "os"}
	switch {
	case q.fileName != "":
		imports = []string{"bytes", "io", "log", "mime/multipart", "net/http", "os"}
	case len(q.query) > 0:
		imports = []string{"io", "log", "net/http", "net/url", "os"}
	case q.json != "":
		imports = []string{"io", "log", "net/http", "os", "strings"}
	}
	for _, name := range imports {
		fmt.Fprintf(&b, "\t%q\n", name)
	}
	b.WriteString(")\n\nfunc main() {\n")
	target, content := quote(q.url), "nil"
	switch {
	case len(q.query) > 0:
		b.WriteString("\tquery := url.Values{}\n")
		for _, p := range q.query {
			fmt.Fprintf(&b, "\tquery.Add(%s, %s)\n", quote(p.name), quote(p.value))
		}
		target = quote(q.url+"?") + "+query.Encode()"
	case q.json != "":
		content = "strings.NewReader(" + goText(q.json) + ")"
	case q.fileName != "":
		q.writeGoForm(&b)
		content = "&form"
	}
	fmt.Fprintf(&b, "\trequest, err := http.NewRequest(%s, %s, %s)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n", quote(q.method), target, content)
	if !q.isOpen {
		fmt.Fprintf(&b, "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(%q))\n", q.variable)
	}
	if q.json != "" {
		b.WriteString("\trequest.Header.Set(\"Content-Type\", \"application/json\")\n")
	}
	if q.fileName != "" {
		b.WriteString("\trequest.Header.Set(\"Content-Type\", writer.FormDataContentType())\n")
	}
	b.WriteString("\tresponse, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer response.Body.Close()\n")
	b.WriteString("\tlog.Print(response.Status)\n\tio.Copy(os.Stdout, response.Body)\n}")
	return b.String()
}

// writeGoForm writes the multipart form of a file.
func (q snippetRequest) writeGoForm(b *strings.Builder) {
	fmt.Fprintf(b, "\tcontent, err := os.ReadFile(%s)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n", quote(q.fileName))
	b.WriteString("\tvar form bytes.Buffer\n\twriter := multipart.NewWriter(&form)\n")
	fmt.Fprintf(b, "\tpart, err := writer.CreateFormFile(\"data\", %s)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tpart.Write(content)\n", quote(q.fileName))
	for _, p := range q.fields {
		fmt.Fprintf(b, "\twriter.WriteField(%s, %s)\n", quote(p.name), quote(p.value))
	}
	b.WriteString("\twriter.Close()\n")
}

// goText is a text as a raw literal of Go, unless it has a back quote.
func goText(text string) string {
	if strings.Contains(text, "`") {
		return strconv.Quote(text)
	}
	return "`" + text + "`"
}
