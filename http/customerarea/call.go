package customerarea

import (
	"context"
	"net/http"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/http/answer"
	"lieudit/http/kit"
	"lieudit/schemas/access"
)

// endpoint reads a request that is allowed and does what it asks for.
type endpoint func(*http.Request, call) (response, error)

// response is a status and a body, or an answer that is written as it is read.
type response struct {
	status int
	body   any
	stream func(context.Context, http.ResponseWriter) error // fails before anything is written, or not at all
}

func (r response) write(w http.ResponseWriter, req *http.Request) error {
	if r.stream != nil {
		return r.stream(req.Context(), w)
	}
	return answer.WriteJSON(w, r.status, r.body)
}

func okResponse(body any) (response, error) { return response{status: http.StatusOK, body: body}, nil }
func createdResponse(body any) (response, error) {
	return response{status: http.StatusCreated, body: body}, nil
}

// call is who asks, and the variables of the path.
type call struct {
	principal access.TokenGrant
	vars      map[string]string
}

func (c call) account() string { return c.vars["id"] }

// metadata is who wants something done to an account, and why.
func (c call) metadata(reason string) commands.Metadata {
	in := commands.Metadata{Actor: "token:" + c.principal.TokenID, Reason: reason}
	if c.principal.Role == access.RoleAgency {
		in.OnBehalfOf = c.account()
	}
	return in
}

// awaitAccounts waits until the read models show what a command on an account, or its refusal, left on the log up to a position.
func (h *handler) awaitAccounts(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 {
		h.WaitForAccounts(ctx, at)
	}
	return err
}

// awaitTokens is shows for a command on a token.
func (h *handler) awaitTokens(ctx context.Context, at eventstore.Position, err error) error {
	if at > 0 {
		h.WaitForTokens(ctx, at)
	}
	return err
}

// queryEndpoint is an endpoint that reads its request from the query.
func queryEndpoint[Q any](do func(*http.Request, call, Q) (response, error)) endpoint {
	return newEndpoint(kit.NewDecoder[Q]().DecodeQuery, do)
}

// bodyEndpoint is an endpoint that reads its request from the body.
func bodyEndpoint[B any](do func(*http.Request, call, B) (response, error)) endpoint {
	return newEndpoint(kit.NewDecoder[B]().DecodeBody, do)
}

func newEndpoint[T any](read func(*http.Request) (T, error), do func(*http.Request, call, T) (response, error)) endpoint {
	return func(r *http.Request, c call) (response, error) {
		in, err := read(r)
		if err != nil {
			return response{}, err
		}
		ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
		defer cancel()
		return do(r.WithContext(ctx), c, in)
	}
}
