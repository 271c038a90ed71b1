/* cells.c - recurrent cells: what a step computes, as equations.
 * Output: descriptions for ricci_recurrent. Invariant: each is data that a user could write. X is a
 * row of the input, H, C, S are states; gates are parts of one product, in the order of the
 * comment. Products of the input alone are taken out of the loop by the compiler, for all steps at
 * once (jit/rewrite/scan.c). */
#include "nn/nn.h"

#define CELL(function, ...)                                                                        \
	const ricci_cell *function(void)                                                           \
	{                                                                                          \
		static const ricci_cell cell = RICCI_CELL(.name = #function, __VA_ARGS__);         \
		return &cell;                                                                      \
	}

#define PARAMETERS(gates, output)                                                                  \
	"weight_ih[" gates "h,n] weight_hh[" gates "h," output "] bias_ih[" gates                  \
	"h] bias_hh[" gates "h]"
#define PROJECTIONS "A[b,g] += X[b,k]*W[g,k]; R[b,g] += H[b,k]*U[g,k]; "
/* i f g o -> the cell's next state E, and its output N (Hochreiter & Schmidhuber 1997; forget gates
 * by Gers et al. 2000). */
#define LSTM                                                                                       \
	"s = C.size(1); "                                                                          \
	"E[b,j] = sigmoid(G[b,j+s])*C[b,j] + sigmoid(G[b,j])*tanh(G[b,j+2*s]) where j < s; "       \
	"N[b,j] = sigmoid(G[b,j+3*s])*tanh(E[b,j]) where j < s"

/* Elman 1990. */
CELL(ricci_rnn, .states = "p", .parameters = PARAMETERS("", "p"),
     .text = "X, H, W, U, B, D -> N: " PROJECTIONS "N[b,j] = tanh(A[b,j] + B[j] + R[b,j] + D[j])")

CELL(ricci_rnn_relu, .states = "p", .parameters = PARAMETERS("", "p"),
     .text = "X, H, W, U, B, D -> N: " PROJECTIONS
	     "N[b,j] = max(A[b,j] + B[j] + R[b,j] + D[j], 0.0)")

CELL(ricci_lstm, .states = "p h", .parameters = PARAMETERS("4", "p"),
     .text = "X, H, C, W, U, B, D -> N, E: " PROJECTIONS
	     "G[b,g] = A[b,g] + B[g] + R[b,g] + D[g]; " LSTM)

/* Cho et al. 2014, as in cuDNN and PyTorch: r z n, the reset gate behind the product. */
CELL(ricci_gru, .states = "h", .parameters = PARAMETERS("3", "h"),
     .text = "X, H, W, U, B, D -> N: " PROJECTIONS
	     "P[b,g] = A[b,g] + B[g]; Q[b,g] = R[b,g] + D[g]; s = H.size(1); "
	     "z = sigmoid(P[b,j+s] + Q[b,j+s]); r = sigmoid(P[b,j] + Q[b,j]); "
	     "N[b,j] = (1 - z)*tanh(P[b,j+2*s] + r*Q[b,j+2*s]) + z*H[b,j] where j < s")

/* Wu et al. 2016, "On multiplicative integration with recurrent neural networks", equation 2. */
CELL(ricci_mi_lstm, .states = "p h", .parameters = "weight_ih[4h,n] weight_hh[4h,p] bias[4h]",
     .text = "X, H, C, W, U, B -> N, E: " PROJECTIONS "G[b,g] = A[b,g]*R[b,g] + B[g]; " LSTM)

/* The same, equation 4; starts of alpha and beta as there in section 3.1. */
CELL(ricci_mi_lstm_general, .states = "p h",
     .parameters = "weight_ih[4h,n] weight_hh[4h,p] alpha[4h]=1 beta_hh[4h]=0.5 "
		   "beta_ih[4h]=0.5 bias[4h]",
     .text = "X, H, C, W, U, F, J, K, B -> N, E: " PROJECTIONS
	     "G[b,g] = F[g]*A[b,g]*R[b,g] + J[g]*R[b,g] + K[g]*A[b,g] + B[g]; " LSTM)

/* Mikolov et al. 2014, "Learning longer memory in recurrent neural networks", equations 3 and 4;
 * the second state is the context, alpha = 0.95. */
CELL(ricci_scrn, .states = "p c",
     .parameters = "weight_ih[h,n] weight_hh[h,p] bias_ih[h] weight_ic[c,n] weight_ch[h,c]",
     .text = "X, H, S, W, U, B, V, P -> N, E: " PROJECTIONS
	     "K[b,j] += X[b,k]*V[j,k]; E[b,j] = 0.05*K[b,j] + 0.95*S[b,j]; "
	     "Q[b,j] += E[b,k]*P[j,k]; N[b,j] = sigmoid(Q[b,j] + A[b,j] + B[j] + R[b,j])")

/* Costa et al. 2017, "Cortical microcircuits as gated-recurrent neural networks", equation 4: i f z
 * o, all through the logistic function; gates subtract. */
CELL(ricci_sublstm, .states = "p h", .parameters = "weight_ih[4h,n] weight_hh[4h,p] bias_ih[4h]",
     .text = "X, H, C, W, U, B -> N, E: " PROJECTIONS
	     "G[b,g] = sigmoid(A[b,g] + B[g] + R[b,g]); s = C.size(1); "
	     "E[b,j] = G[b,j+s]*C[b,j] + G[b,j+2*s] - G[b,j] where j < s; "
	     "N[b,j] = sigmoid(E[b,j]) - G[b,j+3*s] where j < s")

/* Long-long-term memory, the cell of PyTorch's tutorial on C++ extensions: i o g. */
CELL(ricci_lltm, .states = "p h", .parameters = "weight_ih[3h,n] weight_hh[3h,p] bias_ih[3h]",
     .text = "X, H, C, W, U, B -> N, E: " PROJECTIONS
	     "G[b,g] = A[b,g] + B[g] + R[b,g]; s = C.size(1); "
	     "u = G[b,j+2*s] > 0 ? G[b,j+2*s] : expm1(G[b,j+2*s]); "
	     "E[b,j] = C[b,j] + u*sigmoid(G[b,j]) where j < s; "
	     "N[b,j] = tanh(E[b,j])*sigmoid(G[b,j+s]) where j < s")
