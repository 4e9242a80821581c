package event

// This file has the first versions of events that have a second one. Logs keep them forever, and they are still written to a
// log whose format is too low for the second version (see format.go). The rest of the program sees only second versions:
// Decode returns those, and Earlier converts them back.
//
// Texts that the second versions seal are in clear here. Decode marks them (see Clear), so that a reader that opens sealed
// texts leaves them unchanged.

// earlierVersion is an event of a version that has been replaced.
type earlierVersion interface {
	Event
	// later returns the event in the next version, with its personal texts marked as clear.
	later() Event
}

// laterVersion is an event of a version that has replaced another one.
type laterVersion interface {
	Event
	// earlier returns the event in the previous version. Its personal texts must be neither sealed nor marked.
	earlier() Event
}

// Latest converts an event of an earlier version to the latest one, as Decode does. Any other event is returned unchanged.
func Latest(e Event) Event {
	if v, ok := e.(earlierVersion); ok {
		return v.later()
	}
	return e
}

// Earlier converts an event to the previous version, for a log of a lower format. An event with a single version is returned unchanged.
func Earlier(e Event) Event {
	if v, ok := e.(laterVersion); ok {
		return v.earlier()
	}
	return e
}

type secretKeyIssuedV1 struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	Hash  []byte `json:"hash"`
	Hint  string `json:"hint"`
}

func (e secretKeyIssuedV1) later() Event {
	return SecretKeyIssued{Key: e.Key, Label: Clear(e.Label), Hash: e.Hash, Hint: e.Hint}
}

func (e SecretKeyIssued) earlier() Event {
	return secretKeyIssuedV1{Key: e.Key, Label: string(e.Label), Hash: e.Hash, Hint: e.Hint}
}

type publishableKeyIssuedV1 struct {
	Key     string   `json:"key"`
	Label   string   `json:"label"`
	Hash    []byte   `json:"hash"`
	Hint    string   `json:"hint"`
	Token   string   `json:"token"`
	Origins []string `json:"origins"`
}

func (e publishableKeyIssuedV1) later() Event {
	return PublishableKeyIssued{Key: e.Key, Label: Clear(e.Label), Hash: e.Hash, Hint: e.Hint, Token: e.Token, Origins: e.Origins}
}

func (e PublishableKeyIssued) earlier() Event {
	return publishableKeyIssuedV1{Key: e.Key, Label: string(e.Label), Hash: e.Hash, Hint: e.Hint, Token: e.Token, Origins: e.Origins}
}

type tokenIssuedV1 struct {
	Token   string `json:"token"`
	Role    string `json:"role"`
	Account string `json:"account,omitempty"`
	Label   string `json:"label"`
	Hash    []byte `json:"hash"`
	Hint    string `json:"hint"`
}

func (e tokenIssuedV1) later() Event {
	return TokenIssued{Token: e.Token, Role: e.Role, Account: e.Account, Label: Clear(e.Label), Hash: e.Hash, Hint: e.Hint}
}

func (e TokenIssued) earlier() Event {
	return tokenIssuedV1{Token: e.Token, Role: e.Role, Account: e.Account, Label: string(e.Label), Hash: e.Hash, Hint: e.Hint}
}

type referentialOpenedV1 struct {
	Code string `json:"code"`
	Name string `json:"name,omitempty"`
}

func (e referentialOpenedV1) later() Event {
	return ReferentialOpened{Code: e.Code, Name: Clear(e.Name)}
}

func (e ReferentialOpened) earlier() Event {
	return referentialOpenedV1{Code: e.Code, Name: string(e.Name)}
}

type referentialRenamedV1 struct {
	Code   string `json:"code"`
	Before string `json:"before,omitempty"`
	Name   string `json:"name,omitempty"`
}

func (e referentialRenamedV1) later() Event {
	return ReferentialRenamed{Code: e.Code, Before: Clear(e.Before), Name: Clear(e.Name)}
}

func (e ReferentialRenamed) earlier() Event {
	return referentialRenamedV1{Code: e.Code, Before: string(e.Before), Name: string(e.Name)}
}

// EventType is the wire name.
func (secretKeyIssuedV1) EventType() string      { return "account.secret-key-issued.v1" }
func (publishableKeyIssuedV1) EventType() string { return "account.publishable-key-issued.v1" }
func (tokenIssuedV1) EventType() string          { return "token.issued.v1" }
func (referentialOpenedV1) EventType() string    { return "locations.referential-opened.v1" }
func (referentialRenamedV1) EventType() string   { return "locations.referential-renamed.v1" }

func (e secretKeyIssuedV1) validateFields() error      { return checkHash(e.Hash) }
func (e publishableKeyIssuedV1) validateFields() error { return checkHash(e.Hash) }
func (e tokenIssuedV1) validateFields() error          { return checkHash(e.Hash) }
