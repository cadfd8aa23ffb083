// Package api is the HTTP door.
//
// So far it answers the questions of load balancers and orchestrators: is this
// server alive, and does it serve. The znodes themselves are not served over
// HTTP yet.
package api
