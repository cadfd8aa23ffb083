package client

// Async has the operations of a Client in the form that does not wait for the answer.
// A method returns as soon as there is room for the request (WithMaxInFlight), and its
// Pending has the result later. Otherwise it is the method of Client with its name.
type Async struct{ c *Client }

// Async returns the client's asynchronous operations.
func (c *Client) Async() Async { return Async{c} }
