package reference

import (
	"encoding/json"
	"net/url"
	"strings"

	"lieudit/http/pages/i18n"
)

// The parts of a Postman collection, format 2.1, that are used here.
type (
	collection struct {
		Info     collectionInfo  `json:"info"`
		Auth     postmanAuth     `json:"auth"`
		Variable []postmanPair   `json:"variable"`
		Item     []postmanFolder `json:"item"`
	}
	collectionInfo struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Schema      string `json:"schema"`
	}
	postmanAuth struct {
		Type   string        `json:"type"`
		Bearer []postmanPair `json:"bearer,omitempty"`
	}
	postmanPair struct {
		Key         string `json:"key"`
		Value       string `json:"value"`
		Type        string `json:"type,omitempty"`
		Source      string `json:"src,omitempty"`
		Description string `json:"description,omitempty"`
		IsDisabled  bool   `json:"disabled,omitempty"`
	}
	postmanFolder struct {
		Name        string        `json:"name"`
		Description string        `json:"description"`
		Item        []postmanItem `json:"item"`
	}
	postmanItem struct {
		Name     string          `json:"name"`
		Request  postmanRequest  `json:"request"`
		Response []postmanAnswer `json:"response"`
	}
	postmanRequest struct {
		Method      string        `json:"method"`
		Header      []postmanPair `json:"header"`
		URL         postmanURL    `json:"url"`
		Body        *postmanBody  `json:"body,omitempty"`
		Auth        *postmanAuth  `json:"auth,omitempty"`
		Description string        `json:"description"`
	}
	postmanURL struct {
		Raw      string        `json:"raw"`
		Host     []string      `json:"host"`
		Path     []string      `json:"path"`
		Query    []postmanPair `json:"query,omitempty"`
		Variable []postmanPair `json:"variable,omitempty"`
	}
	postmanBody struct {
		Mode     string         `json:"mode"`
		Raw      string         `json:"raw,omitempty"`
		FormData []postmanPair  `json:"formdata,omitempty"`
		Options  map[string]any `json:"options,omitempty"`
	}
	postmanAnswer struct {
		Name            string         `json:"name"`
		OriginalRequest postmanRequest `json:"originalRequest"`
		Status          string         `json:"status"`
		Code            int            `json:"code"`
		Header          []postmanPair  `json:"header"`
		Body            string         `json:"body"`
	}
)

const postmanSchema = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"

// PostmanCollection is the API as a collection that Postman and its relatives import. baseURL is the value of its variable baseUrl; the
// variable key is for the reader's key. Each method is a request with the parameters of its first example; the others are switched off.
func PostmanCollection(baseURL string) ([]byte, error) {
	c := collection{
		Info:     collectionInfo{"lieudit", "Adresses françaises et lieux du client. Mettez votre clé secrète dans la variable « key ».", postmanSchema},
		Auth:     postmanAuth{"bearer", []postmanPair{{Key: "token", Value: "{{key}}", Type: "string"}}},
		Variable: []postmanPair{{Key: "baseUrl", Value: baseURL, Type: "string"}, {Key: "key", Value: "", Type: "string"}},
	}
	for _, t := range API().Tags {
		folder := postmanFolder{Name: t.Name.FR, Description: t.Doc.FR}
		for _, op := range t.Operations {
			for _, m := range op.Methods {
				folder.Item = append(folder.Item, newPostmanItem(op, m))
			}
		}
		c.Item = append(c.Item, folder)
	}
	return json.MarshalIndent(c, "", "  ")
}

func newPostmanItem(op *Operation, m Method) postmanItem {
	item := postmanItem{Name: op.Title.FR, Response: []postmanAnswer{}}
	if len(op.Methods) > 1 {
		item.Name += " (" + m.Method + ")"
	}
	examples := examplesOf(m.Slug)
	var first Example
	if len(examples) > 0 {
		first = examples[0]
	}
	item.Request = newPostmanRequest(op, m, first)
	for _, e := range examples {
		item.Response = append(item.Response, postmanAnswer{
			Name: e.Title, OriginalRequest: newPostmanRequest(op, m, e), Status: "OK", Code: e.Status, Body: e.Answer,
			Header: []postmanPair{{Key: "Content-Type", Value: e.MediaType}},
		})
	}
	return item
}

func newPostmanRequest(op *Operation, m Method, e Example) postmanRequest {
	r := postmanRequest{Method: m.Method, Header: []postmanPair{}, Description: op.Use.FR, URL: postmanURL{Host: []string{"{{baseUrl}}"}, Path: []string{}}}
	typed := strings.Split(strings.TrimPrefix(e.Request.Path(), "/"), "/")
	for i, segment := range strings.Split(strings.TrimPrefix(m.Path, "/"), "/") {
		for _, v := range m.Variables {
			if rest, ok := strings.CutPrefix(segment, "{"+v.Name+"}"); ok {
				value := ""
				if i < len(typed) {
					value = strings.TrimSuffix(typed[i], rest)
				}
				if text, err := url.PathUnescape(value); err == nil {
					value = text
				}
				if rest != "" { // Postman takes all of a segment for the variable's name
					segment = url.PathEscape(value) + rest
					continue
				}
				r.URL.Variable = append(r.URL.Variable, postmanPair{Key: v.Name, Value: value, Description: v.Doc.FR})
				segment = ":" + v.Name
			}
		}
		r.URL.Path = append(r.URL.Path, segment)
	}
	r.URL.Raw = "{{baseUrl}}/" + strings.Join(r.URL.Path, "/")
	r.URL.Query = postmanQuery(m, e)
	if query := e.Request.Query(); query != "" {
		r.URL.Raw += "?" + query
	}
	if e.Request.Origin != "" {
		r.Header = append(r.Header, postmanPair{Key: "Origin", Value: e.Request.Origin})
	}
	if op.IsPublic {
		r.Auth = &postmanAuth{Type: "noauth"}
	}
	r.setBody(m, e)
	return r
}

// postmanQuery are the parameters of an example, and the others switched off.
func postmanQuery(m Method, e Example) (all []postmanPair) {
	q := newSnippetRequest(e, Server{})
	docs := map[string]i18n.Text{}
	for _, f := range m.Query {
		docs[f.Name] = f.Doc.Text
	}
	sent := map[string]bool{}
	for _, p := range q.query {
		sent[p.name] = true
		all = append(all, postmanPair{Key: p.name, Value: p.value, Description: docs[p.name].FR})
	}
	for _, f := range m.Query {
		if !sent[f.Name] {
			all = append(all, postmanPair{Key: f.Name, Value: f.Default, Description: f.Doc.FR, IsDisabled: true})
		}
	}
	return all
}

func (r *postmanRequest) setBody(m Method, e Example) {
	q := newSnippetRequest(e, Server{})
	switch {
	case m.Form != nil:
		r.Body = &postmanBody{Mode: "formdata"}
		for _, f := range m.Form {
			if f.Name == "data" {
				r.Body.FormData = append(r.Body.FormData, postmanPair{Key: "data", Type: "file", Source: q.fileName, Description: f.Doc.FR})
			}
		}
		for _, p := range q.fields {
			r.Body.FormData = append(r.Body.FormData, postmanPair{Key: p.name, Value: p.value, Type: "text"})
		}
	case m.Body != nil:
		r.Header = append(r.Header, postmanPair{Key: "Content-Type", Value: "application/json"})
		r.Body = &postmanBody{Mode: "raw", Raw: q.json, Options: map[string]any{"raw": map[string]string{"language": "json"}}}
	}
}
