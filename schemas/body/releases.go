package body

import "time"

// The answers of the customer area about the data that the service answers from.

// Text is a text in both languages.
type Text struct{ FR, EN string }

// In returns the text in the language fr or en.
func (t Text) In(language string) string {
	if language == "fr" {
		return t.FR
	}
	return t.EN
}

// ReadinessQuery is the query of GET /readiness.
type ReadinessQuery struct {
	Language string `json:"langue,omitempty" enum:"en fr" default:"en" doc:"Of what a part is and what can be done; reasons are in English"`
}

// Readiness is GET /readiness.
type Readiness struct {
	Envelope
	IsReady bool            `json:"pret" doc:"As /readyz answers: no required part fails, or only because the log is silent for a moment"`
	Results []ReadinessPart `json:"results"`
}

// ReadinessPart is a part that the instance which answers depends on.
type ReadinessPart struct {
	Name       string `json:"nom"`
	About      string `json:"objet" doc:"What it is"`
	IsRequired bool   `json:"requis" doc:"The instance is not ready without it"`
	IsFine     bool   `json:"en_ordre"`
	Reason     string `json:"raison,omitempty" doc:"What is wrong"`
	Advice     string `json:"conseil,omitempty" doc:"The first thing to do; the guide has more"`
}

// ServedVintage is the vintage of the address base that the service answers from.
type ServedVintage struct {
	Millesime   string    `json:"millesime" doc:"Date of the data; demo for addresses that the service has invented for itself"`
	Addresses   int       `json:"adresses"`
	Streets     int       `json:"voies"`
	Localities  int       `json:"lieux_dits"`
	Communes    int       `json:"communes"`
	IsSynthetic bool      `json:"synthetique" doc:"The streets and numbers are invented"`
	Bytes       int64     `json:"octets" doc:"Of its file"`
	ImportedAt  time.Time `json:"importe_le"`
}

// ServingInstance is an instance on the event log, and what it serves of a kind of data.
type ServingInstance struct {
	URL       string `json:"url,omitempty" doc:"Where other instances reach it; left out where they do not"`
	Host      string `json:"machine" doc:"Name of its machine"`
	Program   string `json:"version"`
	Date      string `json:"date,omitempty" doc:"Of what it serves, where that was released"`
	SHA256    string `json:"sha256,omitempty" doc:"Of the file that it serves"`
	IsCurrent bool   `json:"a_jour" doc:"It serves the last release"`
	IsThis    bool   `json:"celle_ci" doc:"It gives this answer"`
	Problem   string `json:"probleme,omitempty" doc:"Why it does not serve the last release"`
}

// ServedVintages is GET /vintages.
type ServedVintages struct {
	Envelope
	Results   []ServedVintage   `json:"results" doc:"The vintage that is served, or none"`
	Problem   string            `json:"probleme,omitempty" doc:"Why the current vintage is not served, and what can be done"`
	Instances []ServingInstance `json:"instances,omitempty" doc:"What each instance on the event log serves; left out where no other one runs"`
}

// ServedNetwork is a road network that the service finds routes on: the own one, or that of servers of another engine.
type ServedNetwork struct {
	Engine      string    `json:"moteur" enum:"own osrm valhalla"`
	Date        string    `json:"reseau_routier,omitempty" doc:"Date of the data, where it is known; demo for roads that the service has invented for itself"`
	Modes       []string  `json:"modes"`
	IsSynthetic bool      `json:"synthetique" doc:"The roads are invented"`
	Attribution string    `json:"attribution"`
	Bytes       int64     `json:"octets,omitempty" doc:"Of the own network's file"`
	ImportedAt  time.Time `json:"importe_le,omitzero" doc:"Of the own network"`
}

// ServedNetworks is GET /networks.
type ServedNetworks struct {
	Envelope
	Results   []ServedNetwork   `json:"results" doc:"That of servers of another engine comes first: the own one answers what they do not support"`
	Problem   string            `json:"probleme,omitempty" doc:"Why no road network is served, or not the current one, and what can be done"`
	Instances []ServingInstance `json:"instances,omitempty" doc:"What each instance on the event log serves; left out where no other one runs"`
}
