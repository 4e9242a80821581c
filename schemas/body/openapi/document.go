package openapi

import "github.com/google/jsonschema-go/jsonschema"

const (
	mediaType     = "application/json"
	formMediaType = "multipart/form-data"
	geoMediaType  = "application/geo+json"
)

// document is the part of OpenAPI that is used here, in the order in which it is written. Paths are by path, then by method
// in lower case. The other types of this file are the objects of OpenAPI of the same names; a reference names a component.
type document struct {
	OpenAPI    string                          `json:"openapi"`
	Info       info                            `json:"info"`
	Servers    []server                        `json:"servers"`
	Tags       []tag                           `json:"tags"`
	Paths      map[string]map[string]operation `json:"paths"`
	Components components                      `json:"components"`
}

type info struct {
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Version     string  `json:"version"`
	Contact     contact `json:"contact"`
	License     license `json:"license"`
}

type contact struct {
	Name string `json:"name"`
}

type license struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type server struct {
	URL string `json:"url"`
}

// operation is a method of a path. Every failure of it is among its responses, which are by status. An empty Security means that
// no token is needed; without the member a client would assume the default of the document. Rules are an extension: OpenAPI has
// no word for a rule over several parameters.
type operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Security    []map[string][]string `json:"security"`
	Parameters  []parameter           `json:"parameters,omitempty"`
	Body        *request              `json:"requestBody,omitempty"`
	Rules       []rule                `json:"x-rules,omitempty"`
	Responses   map[string]response   `json:"responses"`
}

// rule is a rule over several parameters. Breaks fits the objects of them that break it.
type rule struct {
	Text   string             `json:"text"`
	Breaks *jsonschema.Schema `json:"breaks,omitempty"`
}

// parameter is a parameter in the query, the path or a header.
type parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Required    bool               `json:"required,omitempty"`
	Description string             `json:"description,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// request is the body of a request, JSON or a form.
type request struct {
	Required bool               `json:"required"`
	Content  map[string]content `json:"content"`
}

// response is every answer with one status.
type response struct {
	Description string             `json:"description"`
	Content     map[string]content `json:"content,omitempty"`
}

// content is a body of one media type. Examples refer to components.
type content struct {
	Schema   *jsonschema.Schema   `json:"schema"`
	Examples map[string]reference `json:"examples,omitempty"`
}

type reference struct {
	Ref string `json:"$ref"`
}

type example struct {
	Value any `json:"value"`
}

// components are the schemas and examples that operations share, by their names. encoding/json sorts maps by their keys, which
// makes the bytes the same each time.
type components struct {
	Schemas  map[string]*jsonschema.Schema `json:"schemas"`
	Examples map[string]example            `json:"examples"`
	Security map[string]scheme             `json:"securitySchemes"`
}

type scheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

// jsonContent is a body in JSON alone.
func jsonContent(c content) map[string]content { return map[string]content{mediaType: c} }
